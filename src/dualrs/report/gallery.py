"""Gallery: why an input has the radius that it has.

Enters: a ledger, and images if they are at hand. Leaves: for each input its votes, its radii, and a sentence on what
limits the certificate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, Certificate, Outcome, aces_threshold, rule
from dualrs.certificates.aces import CORE
from dualrs.certificates.certificate import CLASS, ROUTER
from dualrs.report.diagnostics import choice, compare_sigmas, complete, experts
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import UNLABELLED, Sampled, read_sampled
from dualrs.theory.radius import round_down
from dualrs.votes import AcesVotes, Counts, DualVotes

Image = NDArray[np.uint8]  # (channels, height, width)

SHOWN = 5  # classes of a bar chart; the others are summed
THUMBNAIL = 64  # pixels of the longer side, so that pages of large images stay small

# The filters of the gallery.
LIMITED_BY_ROUTER, LIMITED_BY_RIVAL = "limited by router", "limited by rival"
BY_CORE = "answered by the core"  # of ACES alone
ABSTAINED, MISROUTED, WRONG = "abstained", "mis-routed", "wrong"
FLAGS = (LIMITED_BY_ROUTER, LIMITED_BY_RIVAL, BY_CORE, ABSTAINED, MISROUTED, WRONG)


class Copies(NamedTuple):
    """An image, and at each stage (router if there is one, then sigma by sigma) a noisy copy and a denoised one."""

    image: Image
    noisy: Sequence[Image | None]
    denoised: Sequence[Image | None]


@dataclass(frozen=True, eq=False)
class Why:
    """One input: its certificate, the votes behind it, and what each sigma alone would give.

    ``router`` and ``experts`` are estimation counts, None where nobody was asked. ``selected`` is the class that the
    certificate is about, also where it abstains. ``fixed`` has the radius of each sigma alone for the true class,
    None if some sigma did not vote. Under rule `aces` the router is the selector, with its ``thresholds``;
    ``threshold`` is the one of the rule, and ``core`` the class of the core network, None if it was not asked.
    """

    id: str
    index: int
    label: int | None
    certificate: Certificate
    selected: int
    sigmas: tuple[float, ...]
    router: Counts | None
    experts: tuple[Counts | None, ...]
    fixed: tuple[float, ...] | None
    thresholds: tuple[float, ...] = ()
    threshold: float = 0.0
    core: int | None = None

    @property
    def routes(self) -> tuple[str, ...]:
        """What the answers of the router mean."""
        if not self.thresholds:
            return tuple(f"sigma {sigma:g}" for sigma in self.sigmas)
        ends = [f"{t:g}" for t in self.thresholds]
        between = (f"entropy {low} to {high}" for low, high in pairwise(ends))
        return f"entropy up to {ends[0]}", *between, f"entropy above {ends[-1]}"

    @property
    def flags(self) -> tuple[str, ...]:
        """Which filters of the gallery the input passes."""
        limit = self.certificate.limited_by
        claimed = not self.certificate.abstained
        passed = {
            LIMITED_BY_ROUTER: limit == ROUTER,
            LIMITED_BY_RIVAL: limit not in (CLASS, ROUTER, CORE),
            BY_CORE: limit == CORE,
            ABSTAINED: not claimed,
            MISROUTED: self.best is not None and self.best != self.certificate.sigma_c,
            WRONG: claimed and self.label is not None and self.label != self.certificate.prediction,
        }
        return tuple(flag for flag in FLAGS if passed[flag])

    @property
    def best(self) -> float | None:
        """The sigma with the largest radius, the chosen one among equals; None if not known or if no sigma has one."""
        if self.fixed is None or max(self.fixed) <= 0:
            return None
        chosen = self.sigmas.index(self.certificate.sigma_c)
        if self.fixed[chosen] == max(self.fixed):
            return self.certificate.sigma_c
        return self.sigmas[self.fixed.index(max(self.fixed))]

    def radii(self) -> dict[str, float]:
        """The radii behind the certificate by name, none below zero; then those of ``fixed``."""
        found = {"certified": self.certificate.radius, "class": max(self.certificate.r_c, 0.0)}
        if self.router is not None:
            found["routing"] = max(self.certificate.r_sigma, 0.0)
            for sigma, radius in zip(self.sigmas, self.fixed or (), strict=False):
                found[f"sigma {sigma:g} alone" if self.label is None else f"label at sigma {sigma:g}"] = radius
        return found

    def reason(self, names: Sequence[str] | None = None) -> str:
        """What limits the certificate, in a sentence or two."""
        certificate = self.certificate
        if self.thresholds and certificate.outcome is Outcome.ROUTER_UNDECIDED:
            return f"It abstains: {self._routed}, which is too few to show who answers."
        if self.by_core:
            return f"The core network answers, without noise and so without a radius: {self._routed}."
        sigma, counts = f"sigma {certificate.sigma_c:g}", self.experts[self.sigmas.index(certificate.sigma_c)]
        assert counts is not None, "the chosen expert voted"
        y = class_name(self.selected, names)
        for_class = f"{counts[self.selected]:,} of {counts.sum():,} votes under {sigma} are for {y}"
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return f"It abstains: {for_class}, which is too few to show that it wins."
        class_holds = f"under {sigma} the class stands up to {round_down(certificate.r_c)}"
        if self.router is None:
            return f"The class limits it: {for_class}; beyond {round_down(certificate.r_c)} another class might win."
        if certificate.outcome is Outcome.ROUTER_UNDECIDED:
            return f"It abstains: {self._routed}, and the true answer might be {self._doubt}; {class_holds}."
        beyond = round_down(certificate.r_sigma)
        if certificate.limited_by == CLASS:
            return (
                f"The class limits it: {for_class}; beyond {round_down(certificate.r_c)} another class might win. "
                f"A change of the routing does no harm up to {beyond}."
            )
        return (
            f"The routing limits it: {self._routed}; beyond {beyond} it might answer {self._doubt}. Yet {class_holds}."
        )

    @property
    def by_core(self) -> bool:
        """Whether the core network is selected, and no sigma."""
        return self.certificate.sigma_c == 0

    @property
    def _routed(self) -> str:
        """How many votes of the router are for its choice."""
        assert self.router is not None
        total = self.router.sum()
        if not self.thresholds:
            chosen = self.router[self.sigmas.index(self.certificate.sigma_c)]
            return f"{chosen:,} of {total:,} votes of the router are for sigma {self.certificate.sigma_c:g}"
        below = self.router[: self.thresholds.index(self.threshold) + 1].sum()
        chosen, what = (total - below, "above") if self.by_core else (below, "up to")
        return f"{chosen:,} of {total:,} votes of the selector find an entropy {what} {self.threshold:g}"

    @property
    def _doubt(self) -> str:
        """What else the router might answer."""
        if self.thresholds:
            return "with the core network, which has no radius"
        if self.certificate.limited_by in (CLASS, ROUTER):
            return "another sigma"
        return f"sigma {self.certificate.limited_by.removeprefix('rival ')}, where another class might win"


def explain(ledger: Ledger, rule_name: str | None = None, alpha: float | None = None) -> list[Why]:
    """Why each concluded input has its radius, under the run's own rule and alpha unless others are given."""
    level = ledger.header.alpha if alpha is None else alpha
    return explain_votes(read_sampled(ledger), rule_name or ledger.header.rule, level)


def explain_votes(sampled: Sampled, rule_name: str, alpha: float) -> list[Why]:
    """`explain`, from votes that are read already."""
    votes, asked = sampled.votes, experts(sampled)
    certificates = rule(rule_name).certify(votes, alpha)
    _, selected = choice(sampled)
    router = core = fixed = None
    if isinstance(votes, DualVotes):
        router = votes.router
        if complete(sampled).all() and not router.plan.adaptive:
            fixed = compare_sigmas(sampled, alpha).radii
    elif isinstance(votes, AcesVotes):
        router = votes.selector
        core = np.where(votes.core.any(axis=1), votes.core.argmax(axis=1), ABSTAIN)
        selected = np.where(certificates.sigma_c > 0, selected, core)
    return [
        Why(
            id=str(sampled.ids[i]),
            index=int(sampled.index[i]),
            label=None if sampled.label[i] == UNLABELLED else int(sampled.label[i]),
            certificate=certificates[i],
            selected=int(selected[i]),
            sigmas=tuple(expert.sigma for expert in asked),
            router=None if router is None else router.estimation[i],
            experts=tuple(expert.estimation[i] if expert.estimation[i].any() else None for expert in asked),
            fixed=None if fixed is None else tuple(fixed[i].tolist()),
            thresholds=votes.thresholds if isinstance(votes, AcesVotes) else (),
            threshold=aces_threshold(rule_name) if isinstance(votes, AcesVotes) else 0.0,
            core=None if core is None or core[i] == ABSTAIN else int(core[i]),
        )
        for i in range(len(sampled.ids))
    ]


def class_name(number: int, names: Sequence[str] | None) -> str:
    """How a class is called."""
    return f"class {number}" if names is None else names[number]


def top_classes(counts: Counts, names: Sequence[str] | None, shown: int = SHOWN) -> list[tuple[str, int]]:
    """The most frequent classes with their votes, most first, and the sum of all others."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    named = [(class_name(int(c), names), int(counts[c])) for c in order[:shown]]
    rest = int(counts[order[shown:]].sum())
    return [*named, ("others", rest)] if rest else named


def thumbnail(image: Image) -> bytes:
    """A small PNG of an image of one or three channels."""
    from PIL import Image as Pictures

    picture = Pictures.fromarray(image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    packed = BytesIO()
    picture.save(packed, format="PNG", optimize=True)
    return packed.getvalue()
