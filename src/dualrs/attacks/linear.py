"""The shortest change that takes an image over several borders, each of them taken to be straight."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from dualrs.schemes.aim import Floats

_PARALLEL = 1e-9  # how much of a condition the others may leave open before it contradicts them


def shortest(ups: Sequence[Tensor], bounds: Floats) -> Tensor | None:
    """The shortest d with ``up . d >= bound`` for every pair of them; None if there is none.

    A condition whose ``up`` is zero tells no way and is left out. The others span a space of few dimensions; within it
    this is the problem LDP of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23), by non-negative
    least squares.
    """
    told = [(up.double().flatten(), bound) for up, bound in zip(ups, bounds, strict=True) if up.norm() > 0]
    if not told:
        return None
    lengths = [float(up.norm()) for up, _ in told]
    basis, within = torch.linalg.qr(torch.stack([up / n for (up, _), n in zip(told, lengths, strict=True)], dim=1))
    far = np.array([bound / n for (_, bound), n in zip(told, lengths, strict=True)])
    conditions = np.vstack([within.cpu().numpy(), far])
    wanted = np.append(np.zeros(len(within)), 1.0)
    weights, _ = nnls(conditions, wanted)
    left = conditions @ weights - wanted
    if -left[-1] < _PARALLEL:
        return None
    change: Tensor = basis @ torch.from_numpy(-left[:-1] / left[-1]).to(basis)
    return change.reshape(ups[0].shape).to(ups[0])
