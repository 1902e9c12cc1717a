"""Methods: every way to certify that the votes of one ledger allow, side by side. Sample once, certify every way.

Enters: a ledger that `dualrs certify` wrote. Leaves: per rule its results, its guarantee in words, and the votes that
it alone would have drawn. Side by side is fine; the best rule per input, or one chosen after the votes, is not a
certificate.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, Certificates, Rule
from dualrs.certificates.selection import demand_one_look
from dualrs.errors import BadSetting, BadTable, UnusableVotes
from dualrs.report.accuracy import certified_accuracy
from dualrs.schemes import ORACLE, CascadeVotes, Form, rule
from dualrs.schemes.scheme import sigma_method
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Results, Sampled, demand_certificates, read_sampled
from dualrs.storage.verify import Report, silent
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII
from dualrs.votes import Votes

ENVELOPE = "best fixed sigma at each radius"
NO_METHOD = "none: a property of the curves, which no one classifier has"


@dataclass(frozen=True, eq=False)
class Derived:
    """A rule applied to all concluded inputs of a ledger, in the order of their positions.

    ``guarantee`` is a sentence, and ``guaranteed`` whether there is one that these votes bear out. ``certificates`` is
    None where there are none. ``votes_per_input`` is what the rule would have drawn for each input by itself or,
    in an adaptive run, what was drawn; empty where that is not known. ``sigma`` is that of a fixed sigma;
    ``note`` what a reader has to know before the numbers mean anything.
    """

    name: str
    title: str
    guarantee: str
    guaranteed: bool
    results: Results
    certificates: Certificates | None
    votes_per_input: NDArray[np.int64]
    sigma: float | None = None
    note: str = ""

    def rows(self, order: NDArray[np.int64]) -> "Derived":
        """The same inputs in another order, or some of them."""
        votes = self.votes_per_input
        return replace(
            self,
            results=self.results.rows(order),
            certificates=None if self.certificates is None else self.certificates.rows(order),
            votes_per_input=votes[order] if len(votes) else votes,
        )

    def at(self, inputs: Container[int] | None) -> "Derived":
        """Those at these positions of the dataset alone, or all."""
        if inputs is None:
            return self
        chosen = np.array([k for k, place in enumerate(self.results.index.tolist()) if place in inputs], dtype=np.int64)
        if not len(chosen):
            raise BadSetting(f"none of the {len(self.results):,} inputs of the run stands at these positions")
        return self.rows(chosen)


def methods(
    ledger: Ledger, names: Sequence[str] | None = None, alpha: float | None = None, report: Report = silent
) -> dict[str, Derived]:
    """The rules of these names, or all that the ledger's votes were gathered for, applied, by name.

    Names: ``sigma-0.25`` and so on, ``multiscale``, ``multiscale-authors``, ``oracle``, every two-stage rule
    (``paper``, ``nosplit``, ``fusion``, ...), and ``aces-0.5`` and so on. A name whose votes are missing is refused
    with what to run; without names it is left out. An adaptive run took its votes for one rule, and that is its only
    method without names. ``alpha`` is the run's own unless given.
    """
    demand_certificates(ledger)
    source = _Source(ledger, read_sampled(ledger), ledger.header.alpha if alpha is None else alpha)
    wanted, found = source.names if names is None else names, {}
    for number, name in enumerate(wanted):
        report("deriving methods", number, len(wanted))
        try:
            found[name] = source.oracle() if name == ORACLE else source.derived(source.rule(name))
        except (UnusableVotes, BadTable):  # of votes or labels that are not there
            if names is not None:
                raise
    return found


def own_method(header: Header) -> str:
    """The name of the method under which a run was certified."""
    return header.scheme.own_method(header.rule)


def fixed_sigmas(found: Iterable[Derived]) -> list[Results]:
    """The results of those methods that are a fixed sigma."""
    return [m.results for m in found if m.sigma is not None]


def envelope(fixed: Sequence[Results], radii: Sequence[float] = RADII) -> NDArray[np.float64]:
    """The largest certified accuracy of several fixed sigmas at each radius; shape (radii,).

    A property of their curves: another sigma may attain it at each radius, so no classifier has this curve.
    """
    return np.asarray(np.max([certified_accuracy(results, radii) for results in fixed], axis=0))


def envelope_radii(fixed: Sequence[Results]) -> Floats:
    """The curve of `envelope`: at any r, so many of these radii are at least r; rising.

    The k-th largest of them is the largest k-th radius of any sigma.
    """
    rising = [np.sort(np.where(results.correct, results.radius, 0.0)) for results in fixed]
    best = np.max(rising, axis=0)
    return np.asarray(best[best > 0])


def oracle(sigmas: Sequence[float], fixed: Sequence[Results]) -> Derived:
    """The sigma with the largest radius among those that are right, the first of equals; where none is, it abstains."""
    right = np.stack([np.where(r.correct, r.radius, -1.0) for r in fixed])
    best, radius = right.argmax(axis=0), right.max(axis=0)
    plain = np.stack([np.zeros(len(r), dtype=np.bool_) if r.plain is None else r.plain for r in fixed])
    return Derived(
        ORACLE,
        "best sigma, told by the label",
        "none: it looks at the label, so it bounds what routing could reach and is no method",
        False,
        replace(
            fixed[0],
            prediction=np.where(radius < 0, ABSTAIN, fixed[0].label),
            radius=np.maximum(radius, 0.0),
            sigma_c=np.array(sigmas)[best],
            plain=np.take_along_axis(plain, best[None], axis=0)[0] & (radius == 0),
        ),
        None,
        np.zeros(0, dtype=np.int64),
    )


@dataclass(frozen=True)
class _Source:
    """The votes of a ledger, and how each method is made from them."""

    ledger: Ledger
    sampled: Sampled
    alpha: float

    @property
    def names(self) -> list[str]:
        """Every method that complete votes of this kind of run would allow; of an adaptive run, its own."""
        header = self.ledger.header
        return [own_method(header)] if header.looks else header.scheme.derivable(header.rule)

    def rule(self, name: str) -> Rule[Any]:
        """The rule of a name, if votes of this kind allow it; else what is there, or what to run."""
        scheme, path = self.ledger.header.scheme, self.ledger.path
        if name.startswith("sigma-") and name not in scheme.derivable(""):
            known = ", ".join(map(sigma_method, sorted(scheme.sigmas)))
            raise BadSetting(f"{path} has no method {name}; its sigmas are {known}")
        try:
            return scheme.rule(name)
        except BadSetting as unknown:
            if Form.parse(name) is not None:  # whose own words say what does not fit
                raise
            raise BadSetting(f"there is no method {name!r}; {path} has {', '.join(self.names)}") from unknown
        except UnusableVotes as unfit:
            raise self._of_another_kind(name, rule(name).reads) from unfit

    def derived(self, found: Rule[Any]) -> Derived:
        """A rule applied to all votes; where some are missing, what to run."""
        header, votes = self.ledger.header, self.sampled.votes
        found.check(header.plan, self.alpha)
        self._demand_votes(found)
        try:
            certificates = found.certify(votes, self.alpha)
        except UnusableVotes as lacking:
            if header.looks:
                raise UnusableVotes(f"method {lacking}") from lacking
            where = "; ".join(filter(None, map(self._lacking, self.sampled.view.experts)))
            raise self._missing(found.name, where or str(lacking)) from lacking
        cost, title, guarantee = found.drawn(votes, certificates, self.alpha), found.title, found.guarantee(self.alpha)
        if header.looks:
            view = self.sampled.view
            every = view.experts if view.router is None else (view.router, *view.experts)
            cost = np.asarray(sum(v.selection.sum(axis=1) + v.sampled for v in every))
            title = f"{title}, adaptive, at most n {header.n:,}"
            if found.name != own_method(header):
                guarantee += (
                    f"; but these votes were taken for {own_method(header)} and stop where that needs no more, so that "
                    "the radii are lower than votes of its own would give"
                )
        guaranteed, note = found.guaranteed, ""
        if overlap := header.overlap(found.name, self.sampled.ids.tolist()):
            guarantee, note = overlap.covered(guarantee), overlap.note
            guaranteed = guaranteed and not overlap.by_these_votes
        results = self.sampled.results(certificates)
        sigma = found.parameter if found.name == sigma_method(found.parameter or 0.0) else None
        return Derived(found.name, title, guarantee, guaranteed, results, certificates, cost, sigma, note)

    def oracle(self) -> Derived:
        """`oracle` of the ledger's sigmas."""
        scheme = self.ledger.header.scheme
        if ORACLE not in scheme.derivable(""):
            raise self._of_another_kind(ORACLE, CascadeVotes)
        demand_one_look(f"method {ORACLE}", *self.sampled.view.experts)
        sigmas = sorted(scheme.sigmas)
        fixed = [self.derived(scheme.rule(sigma_method(sigma))).results for sigma in sigmas]
        if not fixed[0].labelled.all():
            raise BadTable(f"the oracle looks at labels, and {self.ledger.path} has inputs without; give labelled data")
        votes = len(fixed) * (self.ledger.header.n0 + self.ledger.header.n)
        return replace(oracle(sigmas, fixed), votes_per_input=np.full(len(fixed[0]), votes))

    def _demand_votes(self, found: Rule[Any]) -> None:
        """Refuse a rule of which some input lacks votes."""
        if found.name == sigma_method(found.parameter or 0.0):
            (expert,) = (e for e in self.sampled.view.experts if e.sigma == found.parameter)
            if lacking := self._lacking(expert):
                raise self._missing(found.name, lacking)
        # An adaptive run left out experts on purpose, and not because they could not help.
        if found.helpful is not None and not self.ledger.header.looks:
            short = np.asarray(found.helpful(self.sampled.votes, self.alpha).any(axis=0))
            if short.any():
                raise self._missing(
                    found.name,
                    f"{short.sum()} of {len(short)} inputs have no votes of an expert that could raise their radius "
                    f"(the first is {self.sampled.ids[short][0]})",
                )

    def _of_another_kind(self, name: str, needed: Any) -> UnusableVotes:
        return UnusableVotes(
            f"method {name} needs votes of {needed.whose}, and {self.ledger.path} is of "
            f"{type(self.sampled.votes).whose}; {needed.how}"
        )

    def _lacking(self, votes: Votes) -> str:
        """Which inputs have no votes at a sigma, in words; empty if none."""
        absent = (votes.selection.sum(axis=1) == 0) | (votes.sampled == 0)
        if not absent.any():
            return ""
        first = self.sampled.ids[absent][0]
        return f"at sigma {votes.sigma:g}, {absent.sum()} of {len(votes)} inputs have none, or not all (first: {first})"

    def _missing(self, name: str, lacking: str) -> UnusableVotes:
        return UnusableVotes(
            f"{self.ledger.path} lacks votes for method {name}: {lacking}. Run `dualrs certify --all-votes` with the "
            "settings of that run into another ledger"
        )
