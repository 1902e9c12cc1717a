"""Field: the soft votes of a smoothed model's networks around an image, with gradients; and its hard votes.

Noise comes from a generator of the attack's own and is fresh at each call; so is what networks draw for themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dualrs.models.denoise import Denoised
from dualrs.models.randomness import FromGenerator
from dualrs.sampling.work import slot_of
from dualrs.schemes.aim import Aim, Floats
from dualrs.smoothed import SmoothedModel
from dualrs.votes import Stage

_AT_ONCE = 256  # noisy copies in a batch


class Slope(NamedTuple):
    """From an image, the way towards an aim; and how far the votes of noisy copies follow each of its moves."""

    up: Tensor
    followed: Floats


class Field:
    """Networks at their sigmas; ``forward`` and ``backward`` count the images that passed through them.

    ``straight`` passes gradients by the denoisers, as if these changed nothing.
    """

    def __init__(self, model: SmoothedModel, generator: Generator, *, straight: bool = False) -> None:
        self._models, self._generator, self._straight = model.models, generator, straight
        self.device = next(iter(self._models.values())).device
        self.forward = self.backward = 0

    def slope(self, image: Tensor, aim: Aim, copies: int) -> Slope:
        """The gradient of the sum over an aim's moves of the log of their answers' mean softmax."""
        image = image.detach().requires_grad_(True)
        up, followed = torch.zeros_like(image), []
        with self._past_denoisers():
            for move in aim.moves:
                votes = list[Tensor]()
                for noise in self._noises(image, move.sigma, copies):
                    logits = self._answer(image + move.sigma * noise, move.stage, move.sigma)
                    votes.append(logits.detach().argmax(dim=1))
                    share = len(noise) / (copies if move.sigma > 0 else 1)
                    gain = logits.log_softmax(dim=1)[:, list(move.answers)].flatten().logsumexp(dim=0)
                    if gain.requires_grad:  # else the answers do not depend on the image
                        (slope,) = torch.autograd.grad(gain, image)
                        self.backward += len(noise)
                        up += share * slope  # the mean over batches: close enough to steer by
                followed.append(move.followed(_shares(votes, logits.shape[1])))
        return Slope(up, np.array(followed))

    @torch.no_grad()
    def vote_slope(self, image: Tensor, aim: Aim, copies: int) -> Slope:
        """The same gradient of the shares of hard votes, from the votes alone.

        By Stein's identity the gradient of P[vote at x + sigma e in A] is E[e 1(vote in A)] / sigma: no network is
        differentiated. It is zero where all votes agree, and where nothing is drawn.
        """
        up, followed = torch.zeros_like(image), []
        for move in aim.moves:
            weighted, plain, votes = torch.zeros_like(image), torch.zeros_like(image), list[Tensor]()
            wanted = torch.tensor(move.answers, device=image.device)
            for noise in self._noises(image, move.sigma, copies):
                logits = self._answer(image + move.sigma * noise, move.stage, move.sigma)
                votes.append(logits.argmax(dim=1))
                weighted += torch.einsum("i,i...->...", torch.isin(votes[-1], wanted).to(image), noise)
                plain += noise.sum(dim=0)
            shares, drawn = _shares(votes, logits.shape[1]), sum(map(len, votes))
            followed.append(move.followed(shares))
            if move.sigma > 0:
                share = float(shares[list(move.answers)].sum())
                up += (weighted - share * plain) / (drawn * move.sigma * (share + 1 / drawn))
        return Slope(up, np.array(followed))

    def followed(self, image: Tensor, aim: Aim, copies: int) -> float:
        """How far the votes of noisy copies follow an aim: as far as the move that they follow least."""
        return min(move.followed(self.shares(image, move.stage, move.sigma, copies)) for move in aim.moves)

    @torch.no_grad()
    def shares(self, image: Tensor, stage: Stage, sigma: float, copies: int) -> Floats:
        """The share of hard votes that each answer has at an image."""
        noises = self._noises(image, sigma, copies)
        logits = torch.cat([self._answer(image + sigma * noise, stage, sigma) for noise in noises])
        return _shares([logits.argmax(dim=1)], logits.shape[1])

    def _noises(self, image: Tensor, sigma: float, copies: int) -> Iterator[Tensor]:
        """Noise for so many copies, in batches; where there is none, zeros for a single copy."""
        if sigma == 0:
            yield torch.zeros_like(image)[None]
            return
        for start in range(0, copies, _AT_ONCE):
            shape = (min(_AT_ONCE, copies - start), *image.shape)
            yield torch.randn(shape, generator=self._generator).to(image)

    def _answer(self, noisy: Tensor, stage: Stage, sigma: float) -> Tensor:
        self.forward += len(noisy)
        drawing = FromGenerator(self._generator, noisy.device)
        return self._models[slot_of(stage, sigma, self._models)](noisy, sigma, drawing).float()

    @contextmanager
    def _past_denoisers(self) -> Iterator[None]:
        """Within it, what leaves a denoiser has the gradient of what entered, if gradients go straight."""
        wholes = [part for model in self._models.values() for part in model.module.modules()]
        denoisers = {part.denoiser for part in wholes if self._straight and isinstance(part, Denoised)}
        hooks = [denoiser.register_forward_hook(_as_if_unchanged) for denoiser in denoisers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _shares(votes: list[Tensor], answers: int) -> Floats:
    found: Floats = np.bincount(torch.cat(votes).cpu().numpy(), minlength=answers) / sum(map(len, votes))
    return found


def _as_if_unchanged(module: nn.Module, entered: tuple[Tensor, ...], left: Tensor) -> Tensor:
    return entered[0] + (left - entered[0]).detach()
