"""Attack: try to break certificates, and bracket the true radius from above.

*Falsify*: inside 0.999 of the radius, on 8-bit images, an attack looks for another answer. The verdict is PREDICT with
a seed that the attack never saw, at alpha over the number of certificates. A certificate is wrong with probability
alpha at most, so that few verdicts against many certificates are no surprise: `Attacks.chance`.

*Bracket*: the nearest image found whose answer is another one. The true radius lies between the certificate's and the
distance of that image.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from torch import Generator

from dualrs.attacks.field import Field
from dualrs.attacks.pixels import distance, is_inside, rounded_inside
from dualrs.attacks.search import Effort, Place, Search
from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction
from dualrs.data.images import LEVELS, Pixels, as_pixels, content_id
from dualrs.errors import BadSetting
from dualrs.sampling.collect import Progress
from dualrs.sampling.noise import fresh_seed
from dualrs.schemes.aim import Aim
from dualrs.smoothed import SmoothedModel
from dualrs.smoothed.model import Images
from dualrs.storage.attacks import Attack, Attacks

INSIDE = 0.999  # of a radius: where a certificate is tried
_WORTH_A_LOOK = 0.25  # share of a place's copies that must follow its aim for votes on it
_WORTH_A_VERDICT = 0.4  # inside a radius
_SEEMS_CHANGED = 0.57  # share of the votes that must follow, so that a thousand can show it
_SMALLEST = 0.05  # radius at which the search for a border begins, for inputs whose own is smaller
_FARTHEST = 14.0  # times that radius, where it ends
_CLEARLY = 0.95  # of the distance that another aim has reached, below which one must come
_NEARER, _FARTHER = 0.9, 1.6  # times the distance of a border: where an image beyond it is looked for
_FAST, _SLOW = (
    1.08,
    1.03,
)  # from one look there to the next, while the aim is not followed by half of the votes, and then
_BORDERS, _VERDICTS = 2, 4  # beyond how many borders, and how often for each: they share alpha
_FEW, _CLEAR = 256, 0.65  # votes at the first look of a verdict, and the share seen before from which it is taken
_COPIES = 4  # times those of a gradient, by which weaknesses are chosen


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
    terms = Terms(rule, alpha, len(claimed), effort or Effort(), bracket=bracket, straight=straight)
    attacker = Attacker(model, terms, seed=seed)
    rows = []
    for image, claim in claimed:
        rows.append(attacker.attack(content_id(image), image, claim))
        report(len(rows))
    return Attacks(tuple(rows), alpha)


@dataclass(frozen=True)
class Terms:
    """What all attacks of a campaign have in common: certificates of one rule and level, and how each is attacked.

    ``count`` is the number of certificates, whatever part of them is attacked here: a verdict against one of them has
    the level alpha over it.
    """

    rule: str | None
    alpha: float
    count: int
    effort: Effort
    bracket: bool = True
    straight: bool = False


class Attacker:
    """Attacks one certificate after the other."""

    def __init__(self, model: SmoothedModel, terms: Terms, *, seed: int | None = None) -> None:
        self._model, self._terms, self._rule = model, terms, model.rule(terms.rule)
        self._effort = terms.effort
        generator = Generator().manual_seed((fresh_seed() if seed is None else seed) % 2**63)
        self._field = Field(model, generator, straight=terms.straight)
        self._search = Search(self._field, terms.effort, generator)
        self._votes = 0

    def attack(self, name: str, image: Pixels, claim: Certificate) -> Attack:
        """Try one certificate and, if asked for, search beyond it."""
        forward, backward, self._votes = self._field.forward, self._field.backward, 0
        self._model.engine.prepare(image)
        row = Attack(name, claim.prediction, claim.radius)
        row, places = self._try(image, self._aims(image, claim), row)
        if self._terms.bracket:
            row = self._nearest(image, places, row)
        return replace(
            row,
            forward=self._field.forward - forward,
            backward=self._field.backward - backward,
            votes=self._votes,
        )

    def _try(self, image: Pixels, aims: list[Aim], row: Attack) -> tuple[Attack, list[Place]]:
        """The verdict on a certificate, and where the searches inside its radius ended.

        One place is judged, or none: the first that seems to be answered otherwise, else the most promising. Nothing of
        a verdict is seen before: these votes have noise of their own. Where no copy of a place is near to following its
        aim, no search begins elsewhere.
        """
        radius = INSIDE * row.radius
        places, tried, share = list[Place](), image, 0.0
        for restart, aim in product(range(self._effort.restarts), aims):
            if share > _SEEMS_CHANGED or (restart and max(p.followed for p in places) < _WORTH_A_LOOK):
                break
            place = self._search.inside(self._tensor(image), aim, radius, at_random=restart > 0)
            places.append(place)
            if place.followed > _WORTH_A_LOOK:
                pixels = rounded_inside(image, place.image.cpu().double().numpy(), radius)
                seen = self._field.followed(self._tensor(pixels), aim, self._effort.votes)
                tried, share = (pixels, seen) if seen > share else (tried, share)
        assert is_inside(image, tried, row.radius), "what is tried lies inside the certified radius"
        if share > _WORTH_A_VERDICT:
            level = self._terms.alpha / max(1, self._terms.count)
            row = replace(row, flipped=self._verdict(tried, row.prediction, level, share))
        return row, places

    def _aims(self, image: Pixels, claim: Certificate) -> list[Aim]:
        """The weaknesses of the model at an image, by a few votes."""
        shares = {
            (stage, sigma): self._field.shares(self._tensor(image), stage, sigma, _COPIES * self._effort.copies)
            for stage, sigma in self._model.models
        }
        return self._model.scheme.aims(self._rule, claim, shares)

    def _nearest(self, image: Pixels, places: list[Place], row: Attack) -> Attack:
        """The nearest image found that is answered otherwise. The simplest aim leads; others must come clearly nearer.

        Guarantee: the answer to it is wrong with probability at most alpha over the votes of all verdicts here.
        """
        centre, start = self._tensor(image), max(row.radius, _SMALLEST)
        row, borders = replace(row, searched=_FARTHEST * start), list[tuple[float, Place]]()
        best = {place.aim: place for place in sorted(places, key=lambda place: place.followed)}
        aims = sorted(best, key=lambda aim: (len(aim.moves), -best[aim].followed))
        for place in (best[aim] for aim in aims):
            limit = min([row.searched, *(_CLEARLY * reach for reach, _ in borders)])
            border = self._search.border(centre, place, start, limit)
            if border is not None:
                borders.append((float((border.image - centre).norm()), border))
        for reach, border in sorted(borders, key=lambda one: one[0])[:_BORDERS]:
            border = self._search.border(centre, border, reach, 2 * reach, fine=True) or border
            if (judged := self._beyond(image, border, row)) is not None:
                simpler = aims[: aims.index(border.aim)]
                assert judged.change is not None, "an image was found"
                changed = self._tensor((image + judged.change).astype(np.uint8))
                led = (aim for aim in simpler if self._field.followed(changed, aim, self._effort.votes) > 1 / 2)
                return replace(judged, aim=next(led, border.aim).what)
        return row

    def _beyond(self, image: Pixels, border: Place, row: Attack) -> Attack | None:
        """The first image beyond a border that a verdict finds to be answered otherwise, if it is not far."""
        centre, factor, verdicts = self._tensor(image), _NEARER, 0
        while factor < _FARTHER and verdicts < _VERDICTS:
            moved = centre + factor * (border.image - centre)
            pixels: Pixels = (moved.clamp(0, 1) * LEVELS).round().byte().cpu().numpy()
            share = self._field.followed(self._tensor(pixels), border.aim, self._effort.votes)
            factor *= _FAST if share < 0.5 else _SLOW
            if share < _SEEMS_CHANGED:
                continue
            answer = self._verdict(pixels, row.prediction, self._terms.alpha / (_BORDERS * _VERDICTS), share)
            if answer != ABSTAIN:
                upper, levels = distance(image, pixels), pixels.astype(np.int16) - image
                return replace(row, upper=upper, answer=answer, change=levels)
            verdicts += 1
            factor *= _SLOW if verdicts < _VERDICTS - 1 else _FAST**2  # the last one shall not be in vain
        return None

    def _verdict(self, pixels: Pixels, y: int, level: float, share: float) -> int:
        """The class that PREDICT names, if it is another one than y, in one look or two: at few votes, then at many.

        The first is left out where the ``share`` of votes that the attack saw tells that few will not do.

        Guarantee: an answer other than y and `ABSTAIN` is wrong with probability at most ``level`` over the votes: each
        look has secret noise of its own, and half of the level.
        """
        many, answer = self._effort.verdict, ABSTAIN
        if share > _CLEAR and many > _FEW:
            answer = self._answer(pixels, _FEW, level / 2)
        if answer == ABSTAIN:
            answer = self._answer(pixels, many, level / 2)
        return ABSTAIN if answer == y else answer

    def _answer(self, pixels: Pixels, votes: int, level: float) -> int:
        """What PREDICT says of an image with a secret seed, which nothing of the attack has seen."""
        counted = Progress()

        def count(progress: Progress) -> None:
            nonlocal counted
            counted = progress

        found = self._model.predict(
            pixels, n=votes, alpha=level, rule=self._rule.name, seed=fresh_seed(), progress=count
        )
        assert isinstance(found, Prediction), "one image was given"
        self._votes += counted.votes
        return int(found.prediction)

    def _tensor(self, image: Pixels) -> torch.Tensor:
        return torch.from_numpy(image).float().div(LEVELS).to(self._field.device)
