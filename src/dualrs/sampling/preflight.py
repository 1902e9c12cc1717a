"""Preflight: try each network on one batch before any vote counts, and refuse what would make votes meaningless.

Enters: networks, the machine that runs them, one image. Leaves: how many answers each network has, a batch size that
fits all of them and, on a CPU, what else suits them: the layout of images, one thread or several.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dualrs.data.images import Pixels
from dualrs.errors import BadModel, BatchDependent, NonDeterministic, NonFiniteLogits, OutOfMemory, RoundingDependent
from dualrs.models.compiled import is_compilers
from dualrs.models.hardware import DTYPES, is_out_of_memory
from dualrs.models.noisy import NoisyModel, answering
from dualrs.models.purity import picture
from dualrs.sampling.abreast import settle_threads
from dualrs.sampling.auxiliary import Vote, VoteRandomness
from dualrs.sampling.batches import noisy_copies, trial_votes
from dualrs.sampling.machine import CACHE, LEAST, Machine
from dualrs.sampling.widest import Widest
from dualrs.sampling.work import Slot
from dualrs.votes import Part, Stage, Stream

# Largest difference of logits, relative to their size, that rounding in another place of a batch explains.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 5e-2, torch.float16: 1e-2}
_FEW = 3  # images
_KERNEL_DIMENSIONS = 4  # of the weights of a convolution
_KERNELS = 8  # times what a layer leaves of a batch: convolutions lay larger ones out anew at each call for too long
_CONTRAST = 4  # of negatives: so strong that the largest number of a batch, too, is another one


def preflight(machine: Machine, models: Mapping[Slot, NoisyModel], pixels: Pixels) -> dict[Slot, int]:
    """The number of answers of each network; the machine's batch size is halved until all of them fit."""
    machine.channels_last = False
    if machine.device.type == "cpu":
        once = {model.module: (model, slot) for slot, model in models.items()}  # whatever the sigma
        tried = [_try_few(machine, *one, pixels) for one in once.values()]
        machine.channels_last = all(each.channels_last for each in tried)
        if machine.suits_networks:
            machine.suit(max(each.widest for each in tried))
    keys = {slot: model.key(slot[1]) for slot, model in models.items()}
    seen: dict[tuple[nn.Module, float | None], Behaviour] = {}
    for slot, model in models.items():
        if keys[slot] not in seen:
            seen[keys[slot]] = _fit(machine, model, slot, pixels)
    answers = {slot: seen[key].answers for slot, key in keys.items()}
    classes = {answers[slot] // model.answers_per_class for slot, model in models.items() if slot[0] is Stage.CLASS}
    if len(classes) > 1:
        raise BadModel(f"the experts have different numbers of classes: {sorted(classes)}")
    each = {keys[slot]: (model, slot) for slot, model in models.items()}
    settle_threads(machine, list(each.values()), pixels, pure=all(behaviour.pure for behaviour in seen.values()))
    return answers


class Behaviour(NamedTuple):
    """What a network showed on a batch."""

    answers: int  # how many different ones it has
    pure: bool  # whether it left nothing behind in itself


class _Few(NamedTuple):
    """What a network shows on a few images."""

    widest: int  # bytes an image of the largest tensor that it makes
    channels_last: bool  # whether it takes images in this layout, answers alike and gains by it


def _try_few(machine: Machine, model: NoisyModel, slot: Slot, pixels: Pixels) -> _Few:
    """Run a network on a few images, in both layouts if it has convolutions; if it cannot, `_fit` will say why."""
    kernels = sum(p.numel() * p.element_size() for p in model.module.parameters() if p.ndim == _KERNEL_DIMENSIONS)
    if not kernels and not machine.suits_networks:
        return _Few(0, channels_last=False)
    stage, sigma = slot
    stream = Stream(stage, Part.SELECTION, sigma)
    noisy = machine.images(noisy_copies(pixels, stream, _FEW), pixels.shape)
    votes = trial_votes(pixels, stream, _FEW)
    widest = Widest(_FEW)
    logits = []
    with suppress(Exception), machine.inference(), torch.compiler.set_stance("force_eager"), widest:
        for layout in (torch.contiguous_format, torch.channels_last) if kernels else (torch.contiguous_format,):
            images = noisy.contiguous(memory_format=layout)
            logits.append(model(images, sigma, VoteRandomness(votes, images.device)))
    widest_bytes = max(widest.bytes, noisy[0].numel() * noisy.element_size())
    gains = kernels <= _KERNELS * max(CACHE, LEAST * widest_bytes)
    alike = len(logits) == 2 and _gap(*logits) <= _TOLERANCE[DTYPES[machine.dtype]]
    return _Few(widest_bytes, gains and alike)


def _fit(machine: Machine, model: NoisyModel, slot: Slot, pixels: Pixels) -> Behaviour:
    stage, sigma = slot
    while True:
        stream = Stream(stage, Part.SELECTION, sigma)
        rows = noisy_copies(pixels, stream, machine.batch_size)
        votes = trial_votes(pixels, stream, 2 * machine.batch_size)  # of the copies, and as many others
        try:
            noisy = machine.images(rows, pixels.shape)
            with machine.inference(), answering(model.name, model.module, noisy):
                return check_behaviour(model, noisy, sigma, DTYPES[machine.dtype], votes)
        except (RuntimeError, MemoryError) as error:
            if machine.compile and is_compilers(error):
                machine.do_without_compiler(model.name, error)
                continue
            if not is_out_of_memory(error):
                raise
            if machine.fixed or machine.batch_size == 1:
                raise OutOfMemory(
                    f"the {model.name} does not fit into memory at the batch size {machine.batch_size}; "
                    "free memory, or start a new run with a smaller batch size"
                ) from error
        machine.batch_size //= 2


def check_finite(logits: Tensor, name: str) -> None:
    """A non-finite output is an error, not a vote."""
    extremes = torch.stack(logits.aminmax()).tolist()  # NaN is both; much quicker than to look at each of many answers
    if not all(map(isfinite, extremes)):
        rows = (~torch.isfinite(logits).all(dim=1)).nonzero().flatten().tolist()
        raise NonFiniteLogits(
            f"the {name} returned NaN or infinite logits on {len(rows)} of {len(logits)} noisy copies"
        )


def check_behaviour(
    model: NoisyModel, noisy: Tensor, sigma: float, dtype: torch.dtype, votes: Sequence[Vote]
) -> Behaviour:
    """Run a batch, then its first half in other places among other images.

    Refuses networks whose answer to an image depends on its company or changes from call to call. A network that draws
    numbers of its own has to answer alike if it draws alike, whatever its company draws. Image i draws from
    ``votes[i]``, and other images from the second half of them.
    """

    def run(images: Tensor, drawing: Sequence[Vote]) -> Tensor:
        return model(images, sigma, VoteRandomness(drawing, images.device))

    own, foreign = votes[: len(noisy)], votes[len(noisy) :]
    logits = run(noisy, own)
    check_finite(logits, model.name)
    before = picture(model.module)  # of what it may have made at its first call, too
    half = max(1, len(noisy) // 2)
    mean = noisy[half:].mean(dim=(1, 2, 3), keepdim=True)
    others = 1 - mean - _CONTRAST * (noisy[half:] - mean)
    moved = run(torch.cat([others, noisy[:half]]), [*foreign[half:], *own[:half]])[len(others) :]
    allowed = _TOLERANCE[dtype]
    if not _gap(logits[:half], moved) <= allowed:  # NaN is no small gap
        # Either cause shows here; running the very same batch again tells them apart.
        if not _gap(run(noisy, own), logits) <= allowed:
            raise NonDeterministic(
                f"the {model.name} gives different logits for the same batch and the same randomness: it may draw "
                "numbers from the randomness that it is given, and from nothing else"
                if model.takes_randomness
                else f"the {model.name} gives different logits for the same batch: remove random layers (dropout, "
                "sampling) from its forward, or have them draw from a parameter called randomness (docs/your-model.md)"
            )
        _check_own_draws(model, logits, own, foreign, partial(run, noisy), allowed)
        raise BatchDependent(
            f"the {model.name}'s logits for an image change with the other images of its batch: it uses batch "
            "statistics; every image must be answered by itself"
        )
    _check_own_draws(model, logits, own, foreign, partial(run, noisy), allowed)
    if not torch.equal(logits[:half], moved):
        warnings.warn(
            RoundingDependent(
                f"the {model.name}'s logits differ in their last bits with the place in the batch; votes at an exact "
                "tie may not be reproduced"
            ),
            stacklevel=2,
        )
    return Behaviour(int(logits.shape[1]), before is not None and before == picture(model.module))


def _check_own_draws(
    model: NoisyModel,
    logits: Tensor,
    own: Sequence[Vote],
    foreign: Sequence[Vote],
    run: Callable[[Sequence[Vote]], Tensor],
    allowed: float,
) -> None:
    """Refuse a network whose answer to an image changes if other images, every second one about, draw otherwise.

    Which of them is random: images that share what they draw by a pattern, such as pairs, would else change together.
    """
    if not model.takes_randomness:
        return
    changed = torch.rand(len(own), generator=torch.Generator().manual_seed(0)) < 0.5
    for other in (changed, ~changed):
        drawing = [theirs if new else ours for ours, theirs, new in zip(own, foreign, other.tolist(), strict=True)]
        kept = (~other).to(logits.device)
        if bool(kept.any()) and not _gap(logits[kept], run(drawing)[kept]) <= allowed:
            raise BatchDependent(
                f"the {model.name}'s logits for an image change with what other images of its batch draw: votes would "
                "not be independent; every image may use its own row of the randomness only"
            )


def _gap(a: Tensor, b: Tensor) -> float:
    """Largest difference, each relative to the size of its own logit: a masked class at -1e9 must hide nothing."""
    return float(((a - b).abs() / (1 + a.abs())).max())
