"""Preflight: run each network on one batch before any vote counts, and refuse what would make votes meaningless."""

import warnings

import torch
from torch import Tensor

from dualrs.errors import BatchDependent, NonDeterministic, NonFiniteLogits, RoundingDependent
from dualrs.models.noisy import NoisyModel

# Largest difference of logits, relative to their size, that rounding in another place of a batch explains.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def check_finite(logits: Tensor, name: str) -> None:
    """A non-finite output is an error, not a vote."""
    if not bool(torch.isfinite(logits).all()):
        rows = (~torch.isfinite(logits).all(dim=1)).nonzero().flatten().tolist()
        raise NonFiniteLogits(
            f"the {name} returned NaN or infinite logits on {len(rows)} of {len(logits)} noisy copies"
        )


def check_behaviour(model: NoisyModel, noisy: Tensor, sigma: float, dtype: torch.dtype) -> int:
    """Run a batch, then its first half in other places among other images; return the number of answers.

    Refuses networks whose answer to an image depends on its company or changes from call to call.
    """
    logits = model(noisy, sigma)
    check_finite(logits, model.name)
    half = max(1, len(noisy) // 2)
    others = 1 - noisy[half:]
    moved = model(torch.cat([others, noisy[:half]]), sigma)[len(others) :]
    allowed = _TOLERANCE[dtype]
    if not _gap(logits[:half], moved) <= allowed:  # NaN is no small gap
        # Either cause shows here; running the very same batch again tells them apart.
        if not _gap(model(noisy, sigma), logits) <= allowed:
            raise NonDeterministic(
                f"the {model.name} gives different logits for the same batch: remove random layers "
                "(dropout, sampling) from its forward"
            )
        raise BatchDependent(
            f"the {model.name}'s logits for an image change with the other images of its batch: it uses batch "
            "statistics; every image must be answered by itself"
        )
    if not torch.equal(logits[:half], moved):
        warnings.warn(
            RoundingDependent(
                f"the {model.name}'s logits differ in their last bits with the place in the batch; votes at an exact "
                "tie may not be reproduced"
            ),
            stacklevel=2,
        )
    return int(logits.shape[1])


def _gap(a: Tensor, b: Tensor) -> float:
    """Largest difference, each relative to the size of its own logit: a masked class at -1e9 must hide nothing."""
    return float(((a - b).abs() / (1 + a.abs())).max())
