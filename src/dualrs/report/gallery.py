"""Gallery: why an input has the radius that it has.

Enters: a ledger, and images if they are at hand. Leaves: for each input its votes, its radii, and a sentence on what
limits the certificate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Rule
from dualrs.certificates.aces import CORE
from dualrs.certificates.certificate import RIVAL, ROUTER, STAGE
from dualrs.report.diagnostics import compare_sigmas
from dualrs.schemes import Scheme, Seen
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import UNLABELLED, Sampled, demand_certificates, read_sampled
from dualrs.votes import Counts

Image = NDArray[np.uint8]  # (channels, height, width)

SHOWN = 5  # classes of a bar chart; the others are summed
THUMBNAIL = 64  # pixels of the longer side, so that pages of large images stay small

# The filters of the gallery.
LIMITED_BY_ROUTER, LIMITED_BY_RIVAL = "limited by router", "limited by rival"
LIMITED_BY_STAGE = "limited by an earlier stage"  # of a cascade
BY_CORE = "answered by the core"  # of ACES alone
ABSTAINED, MISROUTED, WRONG = "abstained", "mis-routed", "wrong"
FLAGS = (LIMITED_BY_ROUTER, LIMITED_BY_RIVAL, LIMITED_BY_STAGE, BY_CORE, ABSTAINED, MISROUTED, WRONG)
UNCERTIFIED = "claimed, no guarantee"  # what the radius of a rule without one is called
PASS = "pass"  # what a vote is called that is for no class


class Copies(NamedTuple):
    """An image, and at each stage (router if there is one, then sigma by sigma) a noisy copy and a denoised one."""

    image: Image
    noisy: Sequence[Image | None]
    denoised: Sequence[Image | None]


@dataclass(frozen=True, eq=False)
class Why:
    """One input: its certificate, the votes behind it, and what each sigma alone would give.

    ``seen`` has the estimation counts of the router, if there is one, and of the experts. ``fixed`` has the radius of
    each sigma alone for the true class, None if some sigma did not vote. ``core`` is the class of a core network, None
    if it was not asked, and ``core_radius`` how far it states that it stands, None if it states nothing.
    """

    id: str
    index: int
    label: int | None
    scheme: Scheme[Any]
    seen: Seen
    fixed: tuple[float, ...] | None
    core: int | None = None
    core_radius: float | None = None

    @property
    def certificate(self) -> Certificate:
        """What is claimed."""
        return self.seen.certificate

    @property
    def flags(self) -> tuple[str, ...]:
        """Which filters of the gallery the input passes."""
        limit, routes = self.certificate.limited_by, self.scheme.routes
        claimed, rival = not self.certificate.abstained, self.certificate.rival is not None
        passed = {
            LIMITED_BY_ROUTER: limit == ROUTER,
            LIMITED_BY_RIVAL: rival and limit.startswith(RIVAL),
            LIMITED_BY_STAGE: rival and limit.startswith(STAGE),
            BY_CORE: limit == CORE,
            ABSTAINED: not claimed,
            MISROUTED: routes and self.best is not None and self.best != self.certificate.sigma_c,
            WRONG: claimed and self.label is not None and self.label != self.certificate.prediction,
        }
        return tuple(flag for flag in FLAGS if passed[flag])

    @property
    def best(self) -> float | None:
        """The sigma with the largest radius, the chosen one among equals; None if not known or if no sigma has one."""
        if self.fixed is None or max(self.fixed) <= 0:
            return None
        sigmas = self.scheme.sigmas
        of_chosen = dict(zip(sigmas, self.fixed, strict=True)).get(self.certificate.sigma_c)
        if of_chosen == max(self.fixed):
            return self.certificate.sigma_c
        return sigmas[self.fixed.index(max(self.fixed))]

    def radii(self) -> dict[str, float]:
        """The radii behind the certificate by name, none below zero; then those of ``fixed``."""
        name = "certified" if self.seen.rule.guaranteed else UNCERTIFIED
        found = {name: self.certificate.radius, "class": max(self.certificate.r_c, 0.0)}
        if np.isfinite(self.certificate.r_sigma):
            found[self.scheme.before] = max(self.certificate.r_sigma, 0.0)
        for sigma, radius in zip(self.scheme.sigmas, self.fixed or (), strict=False):
            found[f"sigma {sigma:g} alone" if self.label is None else f"label at sigma {sigma:g}"] = radius
        return found

    def claim(self, names: Sequence[str] | None = None) -> str:
        """What the certificate claims, in words."""
        return self.certificate.spoken(lambda number: class_name(number, names))

    def reason(self, names: Sequence[str] | None = None) -> str:
        """What limits the certificate, in a sentence or two."""
        return self.scheme.reason(self.seen, lambda number: class_name(number, names))


def explain(ledger: Ledger, rule_name: str | None = None, alpha: float | None = None) -> list[Why]:
    """Why each concluded input has its radius, under the run's own rule and alpha unless others are given."""
    demand_certificates(ledger)
    header = ledger.header
    rule = header.own_rule if rule_name is None else header.scheme.own_rule(rule_name)
    return explain_votes(read_sampled(ledger), rule, header.alpha if alpha is None else alpha)


def explain_votes(sampled: Sampled, rule: Rule[Any], alpha: float) -> list[Why]:
    """`explain`, from votes that are read already."""
    view, certificates = sampled.view, rule.certify(sampled.votes, alpha)
    fixed = None
    if len(view.experts) > 1 and sampled.complete.all() and not view.experts[0].plan.adaptive:
        fixed = compare_sigmas(sampled, alpha).radii
    heard, selected = sampled.scheme.heard(view.experts, rule), certificates.selected
    assert selected is not None, "these were made of votes"
    return [
        Why(
            id=str(sampled.ids[i]),
            index=int(sampled.index[i]),
            label=None if sampled.label[i] == UNLABELLED else int(sampled.label[i]),
            scheme=sampled.scheme,
            seen=Seen(
                certificates[i],
                int(selected[i]),
                None if view.router is None else view.router.estimation[i],
                tuple(expert.estimation[i] if expert.estimation[i].any() else None for expert in heard),
                rule,
            ),
            fixed=None if fixed is None else tuple(fixed[i].tolist()),
            core=None if view.core is None or view.core[i] < 0 else int(view.core[i]),
            core_radius=None if view.core_radius is None else float(view.core_radius[i]),
        )
        for i in range(len(sampled.ids))
    ]


def class_name(number: int, names: Sequence[str] | None) -> str:
    """How a class is called."""
    return f"class {number}" if names is None else names[number]


def shortened(name: str, width: int) -> str:
    """A name in so many characters at most, with an ellipsis where it ends early."""
    return name if len(name) <= width else f"{name[: width - 1].rstrip()}…"


def top_classes(
    counts: Counts, names: Sequence[str] | None, classes: int | None = None, shown: int = SHOWN
) -> list[tuple[str, int]]:
    """The most frequent classes with their votes, most first, the sum of all others, and what passes.

    Counts beyond so many ``classes`` are of votes that pass.
    """
    own, passed = counts[:classes], counts[len(counts[:classes]) :].sum()
    order = np.argsort(-own, kind="stable")
    order = order[own[order] > 0]
    named = [(class_name(int(c), names), int(own[c])) for c in order[:shown]]
    rest = int(own[order[shown:]].sum())
    return [*named, *([("others", rest)] if rest else []), *([(PASS, int(passed))] if passed else [])]


def thumbnail(image: Image) -> bytes:
    """A small PNG of an image of one or three channels."""
    from PIL import Image as Pictures

    picture = Pictures.fromarray(image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    packed = BytesIO()
    picture.save(packed, format="PNG", optimize=True)
    return packed.getvalue()
