"""Field: the soft votes of a smoothed model's networks around images, with gradients; and its hard votes.

Noise comes from a generator of the attack's own and is fresh at each call; so is what networks draw for themselves.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn

from dualrs.models.denoise import Denoised
from dualrs.models.randomness import FromGenerator
from dualrs.sampling.work import slot_of
from dualrs.schemes.aim import Aim, Move
from dualrs.smoothed import SmoothedModel
from dualrs.votes import Stage

_AT_ONCE = 256  # noisy copies in a batch


class Field:
    """Networks at their sigmas; ``forward`` and ``backward`` count the images that passed through them.

    ``straight`` passes gradients by the denoisers, as if these changed nothing.
    """

    def __init__(self, model: SmoothedModel, generator: Generator, *, straight: bool = False) -> None:
        self._models, self._generator, self._straight = model.models, generator, straight
        self.device = next(iter(self._models.values())).device
        self.forward = self.backward = 0

    def slope(self, images: Tensor, aim: Aim, copies: int) -> Tensor:
        """The gradient, for each image, of the sum over an aim's moves of the log of their answers' mean softmax."""
        images = images.detach().requires_grad_(True)
        total = torch.zeros_like(images)
        with self._past_denoisers():
            for copies_here in _portions(copies, max(1, _AT_ONCE // len(images))):
                gain = torch.stack([self._log_share(images, move, copies_here) for move in aim.moves]).sum()
                if not gain.requires_grad:
                    continue  # the answers do not depend on the image
                (slope,) = torch.autograd.grad(gain, images)
                self.backward += len(images) * copies_here * len(aim.moves)
                total += slope * copies_here / copies  # the mean over portions: close enough to steer by
        return total

    @torch.no_grad()
    def vote_slope(self, images: Tensor, aim: Aim, copies: int) -> Tensor:
        """The same gradient of the shares of hard votes, from the votes alone.

        By Stein's identity the gradient of P[vote at x + sigma e in A] is E[e 1(vote in A)] / sigma: no network is
        differentiated. It is zero where all votes agree.
        """
        total = torch.zeros_like(images)
        for move in aim.moves:
            if move.sigma == 0:
                continue  # nothing is drawn, so votes tell nothing
            for number, image in enumerate(images):
                followed = weighted = torch.zeros((), device=images.device)
                plain = torch.zeros_like(image)
                for count in _portions(copies, _AT_ONCE):
                    noise = torch.randn((count, *image.shape), generator=self._generator).to(image)
                    votes = self._answer(image + move.sigma * noise, move.stage, move.sigma).argmax(dim=1)
                    follows = torch.isin(votes, votes.new_tensor(move.answers)).to(image)
                    followed = followed + follows.sum()
                    weighted = weighted + torch.einsum("i,i...->...", follows, noise)
                    plain += noise.sum(dim=0)
                share = followed / copies
                total[number] += (weighted - share * plain) / (copies * move.sigma * (share + 1 / copies))
        return total

    @torch.no_grad()
    def shares(self, images: Tensor, stage: Stage, sigma: float, copies: int) -> Tensor:
        """The share of hard votes that each answer has; shape (images, answers)."""
        found = []
        for part in torch.split(images, max(1, _AT_ONCE // copies)):
            logits = self._logits(part, stage, sigma, copies)
            found.append(nn.functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).double().mean(dim=1))
        return torch.cat(found)

    def _log_share(self, images: Tensor, move: Move, copies: int) -> Tensor:
        logits = self._logits(images, move.stage, move.sigma, copies)
        of_copies = logits.log_softmax(dim=-1)[..., list(move.answers)].logsumexp(dim=-1)
        return of_copies.logsumexp(dim=1) - math.log(of_copies.shape[1])

    def _logits(self, images: Tensor, stage: Stage, sigma: float, copies: int) -> Tensor:
        """Logits on noisy copies of each image; shape (images, copies, answers). Without noise there is one copy."""
        count = copies if sigma > 0 else 1
        noisy = images.repeat_interleave(count, dim=0)
        if sigma > 0:
            noisy = noisy + sigma * torch.randn(noisy.shape, generator=self._generator).to(noisy)
        logits = self._answer(noisy, stage, sigma)
        return logits.view(len(images), count, logits.shape[1])

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


def _as_if_unchanged(module: nn.Module, entered: tuple[Tensor, ...], left: Tensor) -> Tensor:
    return entered[0] + (left - entered[0]).detach()


def _portions(total: int, largest: int) -> list[int]:
    """A number in parts that are not too large."""
    return [largest] * (total // largest) + [total % largest] * (total % largest > 0)
