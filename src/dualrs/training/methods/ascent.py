"""Attacks inside a loss: the direction in which a loss rises, and how far a step may lead.

Enters: images or noise, and a loss of each. Leaves: unit vectors and projections; the last three dimensions are one
image, those before are as many images as you like.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from dualrs.errors import BadModel
from dualrs.training.methods.method import Exercise

_IMAGE = (-3, -2, -1)
_TINY = 1e-12  # of a norm, so that nothing is divided by zero


def steepest(exercise: Exercise, loss: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """Unit vectors along which each loss rises fastest; random ones where its gradient is zero."""
    at = at.detach().requires_grad_()
    total = loss(at).sum()
    gradient = torch.autograd.grad(total, [at], allow_unused=True)[0] if total.requires_grad else None
    if gradient is None:
        raise BadModel(
            "this method follows a gradient to the images, and the network, or the denoiser in front of it, passes "
            "none on; train by gaussian, consistency or macer, which need none"
        )
    flat = norms(gradient) == 0
    if flat.any():
        gradient = torch.where(flat, exercise.normal(*gradient.shape), gradient)
    return gradient / norms(gradient).clamp(min=_TINY)


def norms(images: Tensor) -> Tensor:
    """The norm of each image, kept as dimensions of size 1."""
    found: Tensor = torch.linalg.vector_norm(images, dim=_IMAGE, keepdim=True)
    return found


def within(ball: float | Tensor, moved: Tensor) -> Tensor:
    """Each vector, shortened to the radius of the ball if it is longer."""
    return moved * (ball / norms(moved).clamp(min=_TINY)).clamp(max=1)


def as_long_as(length: Tensor, vectors: Tensor) -> Tensor:
    """Each vector, with another length."""
    return vectors * (length / norms(vectors).clamp(min=_TINY))


def inside(clean: Tensor, moved: Tensor) -> Tensor:
    """Perturbations that keep their images within [0, 1]."""
    return (clean + moved).clamp(0, 1) - clean
