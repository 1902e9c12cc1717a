"""Attack: try to break certificates, and bracket the true radius from above.

*Falsify*: inside 0.999 of the radius, on 8-bit images, an attack looks for another answer. The verdict is PREDICT with
a seed that the attack never saw, at alpha over the number of certificates. A certificate is wrong with probability
alpha at most, so that few verdicts against many certificates are no surprise: `Attacks.chance`.

*Bracket*: the nearest image found whose answer is another one. The true radius lies between the certificate's and the
distance of that image.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Generator

from dualrs.attacks.field import Field
from dualrs.attacks.pixels import distance, is_inside, rounded_inside
from dualrs.attacks.search import Effort, Search
from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Predictions
from dualrs.data.images import LEVELS, Pixels, as_pixels, content_id
from dualrs.errors import BadSetting
from dualrs.sampling.collect import Progress
from dualrs.sampling.noise import fresh_seed
from dualrs.schemes.aim import Aim
from dualrs.smoothed import SmoothedModel
from dualrs.smoothed.model import Images
from dualrs.storage.attacks import Attack, Attacks

INSIDE = 0.999  # of a radius: where a certificate is tried
_SCREEN = 0.05  # level at which the attack itself looks whether an answer changed
_GROWTH = 1.7  # of the radius, from one search beyond the certificate to the next
_ROUNDS = 5
_HALVINGS = 6
_CLOSER = 0.85  # of the distance, at which a further search begins
_RETREATS, _FARTHER = 8, 1.03  # how often, and by which factor, a verdict is asked for farther away
_SMALLEST = 0.05  # radius of the first search for an input whose own is smaller


def attack(
    model: SmoothedModel,
    x: Images,
    certificates: Certificate | Certificates | Sequence[Certificate],
    *,
    alpha: float = 0.001,
    rule: str | None = None,
    effort: Effort | None = None,
    bracket: bool = True,
    straight: bool = False,
    seed: int | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> Attacks:
    """Attack the certified ones among some images; one that abstains claims nothing and is left out.

    ``alpha`` and ``rule`` are those of the certificates. ``bracket`` also searches beyond the radius. ``straight``
    passes gradients by the denoisers. ``report`` is told the number of images done.
    """
    pixels = as_pixels(x)
    claims = [certificates] if isinstance(certificates, Certificate) else list(certificates)
    if len(claims) != len(pixels):
        raise BadSetting(f"{len(claims)} certificates for {len(pixels)} images")
    claimed = [(p, c) for p, c in zip(pixels, claims, strict=True) if c.outcome is Outcome.CERTIFIED]
    attacker = Attacker(model, rule, alpha, len(claimed), effort or Effort(), straight=straight, seed=seed)
    rows = []
    for image, claim in claimed:
        rows.append(attacker.attack(content_id(image), image, claim, bracket=bracket))
        report(len(rows))
    return Attacks(tuple(rows), alpha)


class Attacker:
    """Attacks one certificate after the other; ``count`` is how many there are in all."""

    def __init__(
        self,
        model: SmoothedModel,
        rule: str | None,
        alpha: float,
        count: int,
        effort: Effort,
        *,
        straight: bool = False,
        seed: int | None = None,
    ) -> None:
        self._model, self._rule = model, model.rule(rule)
        self._effort, self._level, self._alpha = effort, alpha / max(1, count), alpha
        generator = Generator().manual_seed((fresh_seed() if seed is None else seed) % 2**63)
        self._field = Field(model, generator, straight=straight)
        self._search = Search(self._field, effort, generator)
        self._votes = 0
        self._generator = generator

    def attack(self, name: str, image: Pixels, claim: Certificate, *, bracket: bool = True) -> Attack:
        """Try one certificate and, if asked for, search beyond it."""
        forward, backward, self._votes = self._field.forward, self._field.backward, 0
        self._model.engine.prepare(image)
        aims = self._aims(image, claim)
        _, tried = self._candidate(image, aims, INSIDE * claim.radius, claim.prediction)
        assert is_inside(image, tried, claim.radius), "what is tried lies inside the certified radius"
        found = Attack(name, claim.prediction, claim.radius, self._verdict(tried, claim.prediction, self._level))
        if bracket:
            found = self._nearest(image, aims, found)
        return replace(
            found,
            forward=self._field.forward - forward,
            backward=self._field.backward - backward,
            votes=self._votes,
        )

    def _aims(self, image: Pixels, claim: Certificate) -> list[Aim]:
        """The weaknesses of the model at an image, by a few votes."""
        tensor = self._tensor(image)[None]
        shares = {
            (stage, sigma): self._field.shares(tensor, stage, sigma, self._effort.votes)[0].cpu().numpy()
            for stage, sigma in self._model.models
        }
        return self._model.scheme.aims(self._rule, claim, shares)

    def _candidate(self, image: Pixels, aims: list[Aim], radius: float, y: int) -> tuple[Aim, Pixels]:
        """The most promising 8-bit image within a radius: one that seems to be answered otherwise, or to be undecided.

        Nothing of a verdict is seen here: these votes have seeds of their own.
        """
        found = [
            (aim, rounded_inside(image, place.cpu().double().numpy(), radius))
            for aim, places in self._search.found(self._tensor(image), aims, radius)
            for place in places
        ]
        answers = self._answers(np.stack([pixels for _, pixels in found]), self._effort.votes, _SCREEN)
        order = sorted(range(len(found)), key=lambda k: (answers[k] == y, answers[k] == ABSTAIN))
        return found[order[0]]

    def _nearest(self, image: Pixels, aims: list[Aim], row: Attack) -> Attack:
        """The nearest image found that is answered otherwise: searches farther and farther, then closer again."""
        y, radius = row.prediction, max(row.radius, _SMALLEST)
        found = None
        for _ in range(_ROUNDS):
            radius *= _GROWTH
            found = self._changed(image, aims, radius, y)
            if found is not None:
                break
        nearest: tuple[Aim, Pixels] | None = None
        while found is not None:
            nearest = found[0], self._on_the_way(image, found[1], y)
            found = self._changed(image, aims, _CLOSER * distance(image, nearest[1]), y)
        if nearest is None:
            return replace(row, searched=radius)
        # What is nearest was let through by luck more often. The verdict has fresh votes, and may need a little more.
        aim, change = nearest[0], nearest[1].astype(np.float64) - image
        for retreat in range(_RETREATS):
            place: Pixels = np.rint(np.clip(image + _FARTHER**retreat * change, 0, LEVELS)).astype(np.uint8)
            answer = self._verdict(place, y, self._alpha)
            if answer != ABSTAIN:
                upper, levels = distance(image, place), place.astype(np.int16) - image
                return replace(row, upper=upper, answer=answer, aim=aim.what, searched=radius, change=levels)
        return replace(row, searched=radius)

    def _changed(self, image: Pixels, aims: list[Aim], radius: float, y: int) -> tuple[Aim, Pixels] | None:
        """An image within a radius that is answered otherwise, by the verdict's number of votes; or None."""
        aim, found = self._candidate(image, aims, radius, y)
        answer = self._answers(found[None], self._effort.verdict, self._alpha)[0]
        return None if answer in (y, ABSTAIN) else (aim, found)

    def _on_the_way(self, image: Pixels, found: Pixels, y: int) -> Pixels:
        """The nearest image on the way to a found one that halving shows to be answered otherwise too."""
        near, far, nearest = 0.0, 1.0, found
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            tried: Pixels = np.rint(image + middle * (found.astype(np.float64) - image)).astype(np.uint8)
            if self._answers(tried[None], self._effort.verdict, self._alpha)[0] in (y, ABSTAIN):
                near = middle
            else:
                far, nearest = middle, tried
        return nearest

    def _verdict(self, pixels: Pixels, y: int, level: float) -> int:
        """The class that PREDICT names with a secret seed of its own, if it is another one than y."""
        (answer,) = self._answers(pixels[None], self._effort.verdict, level, seed=fresh_seed())
        return ABSTAIN if answer == y else answer

    def _answers(self, pixels: Pixels, votes: int, level: float, seed: int | None = None) -> list[int]:
        """What the smoothed model answers to images, `ABSTAIN` where so many votes do not tell."""
        counted = Progress()

        def count(progress: Progress) -> None:
            nonlocal counted
            counted = progress

        own = int(torch.randint(2**62, (), generator=self._generator))
        found = self._model.predict(
            pixels, n=votes, alpha=level, rule=self._rule.name, seed=own if seed is None else seed, progress=count
        )
        assert isinstance(found, Predictions), "a batch was given"
        self._votes += counted.votes
        return [int(p) for p in found.prediction]

    def _tensor(self, image: Pixels) -> torch.Tensor:
        return torch.from_numpy(image).float().div(LEVELS).to(self._field.device)
