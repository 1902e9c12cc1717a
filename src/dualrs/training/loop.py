"""The loop that trains a network: a checkpoint every minute, a log, resumable at any step.

Enters: a task (a network, images and a loss), a schedule and a path. Leaves: the network trained, in evaluation mode.
Every random choice of a step is drawn from (seed, step), so that a run that was stopped goes on as if it had not been:
on one CPU thread, to the last bit. Several processes share each batch (see `processes`).
"""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadCheckpoint, BadSetting, NonFiniteLogits
from dualrs.models.hardware import autocast, check_dtype, fastest_dtype
from dualrs.training.checkpoint import read_checkpoint, write_checkpoint
from dualrs.training.images import TrainingImages
from dualrs.training.log import Log, log_beside
from dualrs.training.memory import Memory, Poll
from dualrs.training.processes import Processes, join
from dualrs.training.schedule import Schedule, are_moments, form

_SECONDS_BETWEEN_CHECKPOINTS = 60
# What randomness is for: the order of images, the loss, layers such as dropout, votes between two epochs.
_ORDER, _BATCH, _LAYERS, _VOTES = 0, 1, 2, 3
_NAMED = 8  # ids in a complaint


@dataclass(frozen=True)
class State:
    """How far a training is, for whoever shows or records it."""

    step: int
    steps: int
    epoch: int
    loss: float
    rate: float
    images_per_second: float  # of this run
    seconds: float  # over all runs
    doing: str = ""  # if not steps


Loss = Callable[[Tensor, Generator], Tensor]  # (indices of a batch, its source of randomness) -> mean loss


@dataclass(frozen=True)
class Task:
    """What is trained: a network on images, by a loss. ``about`` says all of it that decides the weights."""

    network: nn.Module
    images: TrainingImages
    loss: Loss
    about: str
    memory: Memory = field(default_factory=Memory)

    def identity(self, schedule: Schedule) -> str:
        """The sentence that tells this training from any other."""
        return f"{self.about}; {schedule.settings}"


def fit(
    task: Task,
    schedule: Schedule,
    checkpoint: Path,
    *,
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> float:
    """Train the network of ``task`` in place; return the seconds spent, over all runs of this training.

    The log is NAME.log.csv beside the checkpoint. A checkpoint of anything else is refused.
    """
    together = join(device)
    device, network, memory, count = together.device, task.network, task.memory, len(task.images)
    dtype = check_dtype(dtype or fastest_dtype(device))
    network.to(device).train()
    steps_per_epoch = schedule.steps_per_epoch(count)
    if schedule.batch_size % together.count:
        raise BadSetting(
            f"{together.count} processes cannot share batches of {schedule.batch_size} evenly; choose a multiple"
        )
    steps = schedule.epochs * steps_per_epoch
    optimizer = schedule.optimizer_of(network)
    identity = task.identity(schedule)
    step, spent, mean_loss, memory.known = _resume(checkpoint, identity, network, optimizer, count)
    together.agree(f"{identity}, from step {step}")
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    began = saved = time.perf_counter()
    fresh = kept = step
    with (
        Log(log_beside(checkpoint), step) if together.main else nullcontext() as log,
        torch.random.fork_rng([device] if device.type == "cuda" else []),
    ):
        while step < steps:
            epoch, place = divmod(step, steps_per_epoch)
            rate = schedule.rate_at(step, steps_per_epoch)
            if place == 0 or step == fresh:
                memory.epoch = epoch
                if place == 0:  # else the checkpoint has it
                    where = State(step, steps, epoch, mean_loss, rate, 0.0, spent + time.perf_counter() - began)
                    source = partial(_source, schedule.seed, _VOTES, epoch)
                    with autocast(device, dtype):
                        memory.renew(_poll(task, together, source, where, report))
                order = memory.order(count, _source(schedule.seed, _ORDER, epoch))
            batch = order[place * schedule.batch_size : (place + 1) * schedule.batch_size]
            for group in optimizer.param_groups:
                group["lr"] = rate
            torch.manual_seed(_seed(schedule.seed, _LAYERS, step, together.rank))
            with autocast(device, dtype):
                value = task.loss(together.share(batch), _source(schedule.seed, _BATCH, step, together.rank))
            optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            together.average(p.grad for p in network.parameters() if p.grad is not None)
            norm = nn.utils.clip_grad_norm_(network.parameters(), schedule.clip)
            # the first process alone decides when to keep: clocks differ
            due = together.main and time.perf_counter() - saved > _SECONDS_BETWEEN_CHECKPOINTS
            facts = together.mean(torch.stack([value.detach().float(), norm.float(), norm.new_tensor(due).float()]))
            now, size, keep = facts.tolist()
            if not (math.isfinite(now) and math.isfinite(size)):  # a step would spoil the weights
                raise NonFiniteLogits(_complaint(now, size, step + 1, task.images, batch, checkpoint, kept))
            optimizer.step()
            mean_loss = now if step == 0 else 0.98 * mean_loss + 0.02 * now
            step += 1
            elapsed = time.perf_counter() - began
            if log is not None:
                speed = (step - fresh) * schedule.batch_size / elapsed
                state = State(step, steps, epoch, mean_loss, rate, speed, spent + elapsed)
                log.add(state)
                report(state)
            if keep or step == steps:
                together.average(b for b in network.buffers() if b.is_floating_point())
                if together.main:
                    content = {"identity": identity, "step": step, "seconds": spent + elapsed, "loss": mean_loss}
                    states = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
                    known = {"memory": memory.known} if memory.known else {}
                    write_checkpoint(content | states | known, checkpoint)
                saved, kept = time.perf_counter(), step
    network.eval()
    return spent + time.perf_counter() - began


def _poll(
    task: Task, together: Processes, source: Callable[[int], Generator], where: State, report: Callable[[State], None]
) -> Poll:
    def tell(share: float) -> None:
        if together.main:
            report(replace(where, doing=f"counting votes, {share:.0%}"))

    return Poll(task.network, task.images, together, source, tell)


def _seed(seed: int, role: int, number: int, rank: int = 0) -> int:
    # torch's CPU generator reads 32 bits of its seed; mix all numbers into those
    numbers = [seed, role, number] + [rank] * (rank > 0)  # the first process draws as one alone does
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def _source(seed: int, role: int, number: int, rank: int = 0) -> Generator:
    return Generator().manual_seed(_seed(seed, role, number, rank))


def _complaint(
    loss: float, norm: float, step: int, images: TrainingImages, batch: Tensor, checkpoint: Path, kept: int
) -> str:
    """What went wrong, with which images, and what is left."""
    what = f"the norm of the loss's gradient became {norm}" if math.isfinite(loss) else f"the loss became {loss}"
    named = ", ".join(images.ids[i] for i in batch[:_NAMED].tolist())
    more = f" and {len(batch) - _NAMED} more" if len(batch) > _NAMED else ""
    left = f"the last good checkpoint is {checkpoint}, of step {kept}" if kept else "there is no checkpoint yet"
    return (
        f"{what} at step {step}, on the images {named}{more}; {left}. The same command would end here again: look at "
        "the images, or lower the learning rate and give the result another name"
    )


def _resume(
    path: Path, identity: str, network: nn.Module, optimizer: torch.optim.Optimizer, images: int
) -> tuple[int, float, float, dict[str, Tensor]]:
    """Step, seconds, mean loss and memory of a checkpoint, after its weights were taken over; zeros if there is none.

    Everything is looked at before anything is taken over.
    """
    if not path.exists():
        return 0, 0.0, 0.0, {}
    broken = (
        f"{path} is not a whole checkpoint; delete it to begin anew (it was cut short or altered, or an earlier dualrs "
        "wrote it)"
    )
    try:
        content = read_checkpoint(path)
        found, step = str(content["identity"]), int(content["step"])
        seconds, loss = float(content["seconds"]), float(content["loss"])
        weights, moments = content["network"], content["optimizer"]["state"]
        known = {str(name): table for name, table in content.get("memory", {}).items()}
    except Exception as error:  # torch.load fails in many ways, none of which says more
        raise BadCheckpoint(broken) from error
    if found != identity:
        raise BadCheckpoint(
            f"{path} belongs to another training; use another folder.\n  there: {found}\n  here:  {identity}"
        )
    if step < 1 or not math.isfinite(seconds) or form(weights) != form(network.state_dict()):
        raise BadCheckpoint(broken)
    if not are_moments(moments, optimizer):
        raise BadCheckpoint(broken)
    if any(not isinstance(table, Tensor) or table.shape[:1] != (images,) for table in known.values()):
        raise BadCheckpoint(broken)
    try:
        network.load_state_dict(weights)
        # Rates and the like are those of the schedule, which the identity names.
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    except Exception as error:  # of a network with states of its own kind
        raise BadCheckpoint(broken) from error
    return step, seconds, loss, known
