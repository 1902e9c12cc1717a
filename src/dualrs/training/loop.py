"""The loop that trains a network: AdamW, a checkpoint every minute, resumable at any step.

Enters: a network, a loss of a batch, a schedule and a folder. Leaves: the network trained, in evaluation mode. Every
random choice of a step is drawn from (seed, step), so that a run that was stopped goes on as if it had not been.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadCheckpoint, BadSetting, NonFiniteLogits
from dualrs.files import whole_file
from dualrs.models.hardware import autocast, check_dtype, fastest_dtype, open_device

_SECONDS_BETWEEN_CHECKPOINTS = 60
_WARM_UP = 0.1  # share of the steps
_CLIP = 1.0  # norm of the gradient


@dataclass(frozen=True)
class Schedule:
    """How long, how fast and from which seed."""

    epochs: int = 20
    batch_size: int = 128
    rate: float = 2e-3
    weight_decay: float = 0.02
    seed: int = 0
    halve_every: int | None = None  # epochs; without it the rate warms up and then falls linearly to nothing

    def __post_init__(self) -> None:
        if (
            min(self.epochs, self.batch_size - 1, 1 if self.halve_every is None else self.halve_every) < 1
            or not self.rate > 0
            or min(self.weight_decay, self.seed) < 0
        ):
            raise BadSetting(f"epochs, batch size and rate must be positive, decay and seed not negative; got {self}")

    def rate_at(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step, counted from 0."""
        if self.halve_every is not None:
            return self.rate * 0.5 ** (step // steps_per_epoch // self.halve_every)
        share = (step + 1) / (self.epochs * steps_per_epoch + 1)
        return self.rate * min(share / _WARM_UP, (1 - share) / (1 - _WARM_UP))


@dataclass(frozen=True)
class State:
    """How far the training is, for whoever shows it."""

    step: int
    steps: int
    epoch: int
    loss: float
    images_per_second: float


Loss = Callable[[Tensor, Generator], Tensor]  # (indices of a batch, its source of randomness) -> mean loss


def fit(
    network: nn.Module,
    loss: Loss,
    count: int,
    schedule: Schedule,
    checkpoint: Path,
    *,
    about: str,
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> float:
    """Train ``network`` on ``count`` images; return the seconds spent, over all runs of this training.

    ``about`` says what is trained on what; a checkpoint of anything else is refused.
    """
    device = open_device(device)
    dtype = check_dtype(dtype or fastest_dtype(device))
    network.to(device).train()
    steps_per_epoch = count // schedule.batch_size
    if steps_per_epoch == 0:
        raise BadSetting(f"{count} images do not fill one batch of {schedule.batch_size}")
    steps = schedule.epochs * steps_per_epoch
    optimizer = torch.optim.AdamW(_groups(network, schedule.weight_decay), lr=schedule.rate)
    identity = f"{about}; {asdict(schedule)}"
    step, spent = _resume(checkpoint, identity, network, optimizer)
    mean_loss, began, saved, fresh = 0.0, time.perf_counter(), time.perf_counter(), step
    while step < steps:
        epoch, place = divmod(step, steps_per_epoch)
        if place == 0 or step == fresh:
            order = torch.randperm(count, generator=_source(schedule.seed, 0, epoch))
        indices = order[place * schedule.batch_size : (place + 1) * schedule.batch_size]
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate_at(step, steps_per_epoch)
        with autocast(device, dtype):
            value = loss(indices, _source(schedule.seed, 1, step))
        optimizer.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
        optimizer.step()
        step += 1
        now = float(value.detach())
        if not np.isfinite(now):
            raise NonFiniteLogits(
                f"the loss became {now} at step {step}; the last checkpoint is kept: lower the learning rate"
            )
        mean_loss = now if step == fresh + 1 else 0.98 * mean_loss + 0.02 * now
        elapsed = time.perf_counter() - began
        report(State(step, steps, epoch, mean_loss, (step - fresh) * schedule.batch_size / elapsed))
        if time.perf_counter() - saved > _SECONDS_BETWEEN_CHECKPOINTS or step == steps:
            _save(checkpoint, identity, step, spent + elapsed, network, optimizer)
            saved = time.perf_counter()
    network.eval()
    return spent + time.perf_counter() - began


def digest(tensor: Tensor) -> str:
    """A short hash of numbers, for the sentence that says what is trained on what."""
    return hashlib.blake2b(tensor.contiguous().numpy().tobytes(), digest_size=8).hexdigest()


def _groups(network: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Weights decay; biases and normalisation do not."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _source(seed: int, role: int, number: int) -> Generator:
    # torch's CPU generator reads 32 bits of its seed; mix all three numbers into those
    mixed = int(np.random.SeedSequence([seed, role, number]).generate_state(1)[0])
    return Generator().manual_seed(mixed)


def _save(
    path: Path, identity: str, step: int, seconds: float, network: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "identity": identity,
        "step": step,
        "seconds": seconds,
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    with whole_file(path) as file:
        torch.save(content, file)


def _resume(path: Path, identity: str, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    if not path.exists():
        return 0, 0.0
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        found, step, seconds = str(content["identity"]), int(content["step"]), float(content["seconds"])
    except Exception as error:  # torch.load fails in many ways, none of which says more
        raise BadCheckpoint(f"{path} is not a whole checkpoint; delete it to begin anew") from error
    if found != identity:
        raise BadCheckpoint(
            f"{path} belongs to another training; use another folder.\n  there: {found}\n  here:  {identity}"
        )
    network.load_state_dict(content["network"])
    optimizer.load_state_dict(content["optimizer"])
    return step, seconds
