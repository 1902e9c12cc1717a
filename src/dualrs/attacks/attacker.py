"""Attack: try to break certificates, and bracket the true radius from above.

*Falsify*: inside 0.999 of the radius, on 8-bit images, an attack looks for another answer. The verdict is PREDICT with
a seed that the attack never saw, at alpha over the number of certificates. A certificate is wrong with probability
alpha at most, so that few verdicts against many certificates are no surprise: `Attacks.chance`.

*Bracket*: the nearest image found whose answer is another one. The true radius lies between the certificate's and the
distance of that image.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from torch import Generator

from dualrs.attacks.field import Field
from dualrs.attacks.pixels import distance, is_inside, rounded_inside
from dualrs.attacks.search import PROMISING, SHOWN, WORTH_A_VERDICT, Effort, Place, Search, log_odds
from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction
from dualrs.data.images import LEVELS, Pixels, as_pixels, content_id
from dualrs.errors import BadSetting
from dualrs.sampling.collect import Progress
from dualrs.sampling.noise import fresh_seed
from dualrs.schemes.aim import Aim
from dualrs.smoothed import SmoothedModel
from dualrs.smoothed.model import Images
from dualrs.storage.attacks import Attack, Attacks

VERSION = 2  # of the attack: raise it with whatever changes what is found, so that no file holds rows of two of them
INSIDE = 0.999  # of a radius: where a certificate is tried
_SEEMS_CHANGED = 0.57  # share of the votes that must follow, so that no further search is needed there
_FEW, _CLEAR = 256, 0.65  # votes at the first look of a verdict, and the share seen before from which it is taken
_SMALLEST = 0.05  # radius at which the search for a border begins, for inputs whose own is smaller
_FARTHEST = 14.0  # times that radius, where it ends
_CLASSES = 2  # that each aim tries beyond the radius
_CLEARLY = 0.95  # of the distance that another aim has reached, below which one must come
_ROUNDS = 3  # of votes by which the place of a verdict is found
_JUMP = 2.0  # times the distance by which it may be moved at once
_EASILY = 0.66, 0.8  # share of the votes at the first verdict of each chain beyond a radius; chains share alpha
_QUARTER = 4  # of the votes do there


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

    def attack(self, name: str, image: Pixels, claim: Certificate, tried: Attack | None = None) -> Attack:
        """Try one certificate and, if asked for, search beyond it; one that was ``tried`` before is not tried again."""
        forward, backward, self._votes = self._field.forward, self._field.backward, 0
        self._model.engine.prepare(image)
        aims = self._model.scheme.aims(self._rule, claim)
        if tried is None:
            row, places = self._try(image, aims, Attack(name, claim.prediction, claim.radius))
        else:
            row, places = tried, [self._inside(image, aim, claim.radius) for aim in aims]
        if self._terms.bracket:
            row = self._nearest(image, places, row)
        return replace(
            row,
            forward=row.forward + self._field.forward - forward,
            backward=row.backward + self._field.backward - backward,
            votes=row.votes + self._votes,
        )

    def _try(self, image: Pixels, aims: list[Aim], row: Attack) -> tuple[Attack, list[Place]]:
        """The verdict on a certificate, and where the searches inside its radius ended.

        One place is judged, or none: the first that seems to be answered otherwise, else the most promising. Nothing of
        a verdict is seen before: these votes have noise of their own. Where no place is near to following its aim, no
        search begins elsewhere.
        """
        radius = INSIDE * row.radius
        places, tried, share = list[Place](), image, 0.0
        for restart, aim in product(range(self._effort.restarts), aims):
            if share > _SEEMS_CHANGED or (restart and max(p.followed for p in places) < WORTH_A_VERDICT):
                break
            place = self._inside(image, aim, row.radius, at_random=restart > 0)
            places.append(place)
            if place.followed > PROMISING:
                pixels = rounded_inside(image, place.image.cpu().double().numpy(), radius)
                seen = self._field.followed(self._tensor(pixels), aim, self._effort.votes)
                tried, share = (pixels, seen) if seen > share else (tried, share)
        assert is_inside(image, tried, row.radius), "what is tried lies inside the certified radius"
        if share > WORTH_A_VERDICT:
            level = self._terms.alpha / max(1, self._terms.count)
            row = replace(row, flipped=self._verdict(tried, row.prediction, level, share))
        return row, places

    def _inside(self, image: Pixels, aim: Aim, radius: float, *, at_random: bool = False) -> Place:
        return self._search.inside(self._tensor(image), aim, INSIDE * radius, at_random=at_random)

    def _nearest(self, image: Pixels, places: list[Place], row: Attack) -> Attack:
        """The nearest image found that is answered otherwise. The simplest aim leads; others must come clearly nearer.

        Guarantee: that it is answered otherwise is wrong with probability at most alpha over the votes of all verdicts
        here: chains of them share alpha.
        """
        centre, start = self._tensor(image), max(row.radius, _SMALLEST)
        row, borders = replace(row, searched=_FARTHEST * start), list[tuple[float, Place]]()
        between = row.radius, row.searched
        best = {place.aim: place for place in sorted(places, key=lambda place: place.followed)}
        aims = sorted(best, key=lambda aim: (len(aim.moves), -best[aim].followed))
        for place, rank in product((best[aim] for aim in aims), range(_CLASSES)):
            if (aim := place.towards(rank)) is not None:
                limit = min((_CLEARLY * reach for reach, _ in borders), default=math.inf)
                border = self._search.border(centre, replace(place, aim=aim), start, between, limit=limit)
                if border is not None:
                    borders.append((float((border.image - centre).norm()), border))
        borders = sorted(borders, key=lambda one: one[0])
        for easily, (reach, coarse) in zip(_EASILY, borders + borders[:1], strict=False):
            border = self._search.border(centre, coarse, reach, between, fine=True) or coarse
            if (judged := self._beyond(image, border, easily, row)) is not None:
                simpler = [aim for aim in aims if len(aim.moves) < len(border.aim.moves)]
                assert judged.change is not None, "an image was found"
                changed = self._tensor((image + judged.change).astype(np.uint8))
                led = (aim for aim in simpler if self._field.followed(changed, aim, self._effort.votes) > 1 / 2)
                return replace(judged, aim=next(led, border.aim).what)
        return row

    def _beyond(self, image: Pixels, border: Place, easily: float, row: Attack) -> Attack | None:
        """The nearer of two images beyond a border that verdicts find to be answered otherwise; None if both are not.

        The farther one, which votes should show ``easily``, is judged first, and the nearer one only if that was found
        changed.

        Guarantee: an image is found changed that is not with probability at most alpha over the number of chains: the
        first such image ends the chain, or its own verdict is wrong; so both verdicts have the whole level.
        """
        reach = float((border.image - self._tensor(image)).norm())
        before, found, rise = self._lacking(image, border.aim), list[float](), 1 / reach
        for _ in range(_ROUNDS):
            lacking = self._lacking(self._along(image, border, reach), border.aim)
            rise = max(
                border.rise, (before - lacking) / reach, 1 / reach
            )  # hard votes may change faster than soft ones
            there = reach + lacking / rise
            near = reach / _JUMP < there < reach * _JUMP
            found = [*found, there] if near else []  # from afar it tells no more than the side
            reach = float(np.mean(found)) if near else float(np.clip(there, reach / _JUMP, reach * _JUMP))
        judged, many = None, self._effort.verdict
        for share, votes in ((easily, max(1, many // _QUARTER)), (SHOWN, many)):
            pixels = self._along(image, border, reach + (log_odds(share) - log_odds(SHOWN)) / rise)
            answer = self._answer(pixels, votes, self._terms.alpha / len(_EASILY))
            if answer in (ABSTAIN, row.prediction):
                break
            levels = pixels.astype(np.int16) - image
            judged = replace(row, upper=distance(image, pixels), answer=answer, change=levels)
        return judged

    def _lacking(self, pixels: Pixels, aim: Aim) -> float:
        """By how much the logarithm of the odds of an aim must rise, so that a verdict can show it."""
        votes = self._effort.votes
        followed = votes * self._field.followed(self._tensor(pixels), aim, votes)
        return log_odds(SHOWN) - log_odds((followed + 0.5) / (votes + 1))

    def _along(self, image: Pixels, border: Place, reach: float) -> Pixels:
        """The 8-bit image at a distance, on the way to a border."""
        centre = self._tensor(image)
        way = border.image - centre
        moved = centre + way * (reach / way.norm())
        pixels: Pixels = (moved.clamp(0, 1) * LEVELS).round().byte().cpu().numpy()
        return pixels

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
