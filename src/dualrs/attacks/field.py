"""Field: the soft votes of a smoothed model's networks around an image, with gradients; and its hard votes.

Noise comes from a generator of the attack's own and is fresh at each call; so is what networks draw for themselves.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from dualrs.models.denoise import Denoised
from dualrs.models.randomness import FromGenerator
from dualrs.sampling.work import slot_of
from dualrs.schemes.aim import Aim, Floats, Move
from dualrs.smoothed import SmoothedModel
from dualrs.votes import Stage

_AT_ONCE = 256  # noisy copies in a batch

Sight = tuple[Tensor, float, float, Floats]  # of one move: its part of a `Slope`


class Slope(NamedTuple):
    """What is seen at an image of each move of an aim.

    The logarithm of its ``odds`` by soft votes and the gradient of that, ``up``; how far the hard votes of noisy copies
    ``followed`` it; and the soft ``shares`` of all answers.
    """

    up: list[Tensor]
    odds: Floats
    followed: Floats
    shares: list[Floats]

    @property
    def way(self) -> Tensor:
        """The gradient of the sum of the logarithms of the moves' probabilities: what lacks most leads."""
        lacking = 1 / (1 + np.exp(self.odds))
        return torch.stack([up * float(lack) for up, lack in zip(self.up, lacking, strict=True)]).sum(dim=0)


class Field:
    """Networks at their sigmas; ``forward`` and ``backward`` count the images that passed through them.

    ``straight`` passes gradients by the denoisers, as if these changed nothing.
    """

    def __init__(self, model: SmoothedModel, generator: Generator, *, straight: bool = False) -> None:
        self._models, self._generator, self._straight = model.models, generator, straight
        self.device = next(iter(self._models.values())).device
        self.forward = self.backward = 0

    def slope(self, image: Tensor, aim: Aim, copies: int) -> Slope:
        """What mean softmax probabilities say of an aim's moves."""
        image = image.detach().requires_grad_(True)
        with self._past_denoisers():
            return _seen([self._soft(image, move, copies) for move in aim.moves])

    def _soft(self, image: Tensor, move: Move, copies: int) -> Sight:
        up, odds, shares, votes = torch.zeros_like(image), 0.0, np.zeros(1), list[Tensor]()
        for noise in self._noises(image, move.sigma, copies):
            logits = self._answer(image + move.sigma * noise, move.stage, move.sigma)
            votes.append(logits.detach().argmax(dim=1))
            part = len(noise) / (copies if move.sigma > 0 else 1)
            mass = logits.log_softmax(dim=1).logsumexp(dim=0) - math.log(len(noise))
            likely = mass.detach().exp().double().cpu().numpy()
            raised, lowered = move.sides(likely)
            gain = mass[raised].logsumexp(dim=0) - mass[lowered].logsumexp(dim=0)
            if gain.requires_grad:  # else the answers do not depend on the image
                (slope,) = torch.autograd.grad(gain, image)
                self.backward += len(noise)
                up += part * slope  # the mean over batches: close enough to steer by
            odds, shares = odds + part * float(gain.detach()), shares + part * likely
        return up.detach(), odds, move.followed(_shares(votes, logits.shape[1])), shares

    @torch.no_grad()
    def vote_slope(self, image: Tensor, aim: Aim, copies: int) -> Slope:
        """The same from the shares of hard votes alone.

        By Stein's identity the gradient of P[vote at x + sigma e in A] is E[e 1(vote in A)] / sigma: no network is
        differentiated. It is zero where all votes agree, and where nothing is drawn.
        """
        return _seen([self._hard(image, move, copies) for move in aim.moves])

    def _hard(self, image: Tensor, move: Move, copies: int) -> Sight:
        noises, votes = list[Tensor](), list[Tensor]()
        for noise in self._noises(image, move.sigma, copies):
            logits = self._answer(image + move.sigma * noise, move.stage, move.sigma)
            votes.append(functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(image))
            noises.append(torch.einsum("ia,i...->a...", votes[-1], noise))
        drawn = sum(map(len, votes))
        by_answer = torch.stack(noises).sum(dim=0) / drawn
        shares: Floats = torch.cat(votes).double().mean(dim=0).cpu().numpy()
        up, odds = torch.zeros_like(image), 0.0
        for sign, side in zip((1, -1), move.sides(shares), strict=True):
            share = float(shares[side].sum())
            odds += sign * math.log(share + 1 / (2 * drawn))
            if move.sigma > 0:
                moved = by_answer[side].sum(dim=0) - share * by_answer.sum(dim=0)
                up += sign * moved / (move.sigma * (share + 1 / drawn))
        return up, odds, move.followed(shares), shares

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


def _seen(moves: list[Sight]) -> Slope:
    up, odds, followed, shares = zip(*moves, strict=True)
    return Slope(list(up), np.array(odds), np.array(followed), list(shares))


def _shares(votes: list[Tensor], answers: int) -> Floats:
    found: Floats = np.bincount(torch.cat(votes).cpu().numpy(), minlength=answers) / sum(map(len, votes))
    return found


def _as_if_unchanged(module: nn.Module, entered: tuple[Tensor, ...], left: Tensor) -> Tensor:
    return entered[0] + (left - entered[0]).detach()
