"""Methods: every way to certify that the votes of one ledger allow, side by side. Sample once, certify every way.

Enters: a ledger that `dualrs certify` wrote. Leaves: per method its results, its guarantee in words, and the votes that
it alone would have drawn. Side by side is fine; the best method per input, or one chosen after the votes, is not a
certificate.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates, Rule, aces_rule, aces_threshold, rule
from dualrs.certificates.multiscale import multiscale
from dualrs.certificates.multiscale_authors import multiscale_authors
from dualrs.certificates.selection import demand_one_look, top
from dualrs.errors import BadSetting, BadTable, UnusableVotes
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.diagnostics import experts
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Results, Sampled, read_sampled
from dualrs.storage.verify import Report, silent
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII
from dualrs.votes import AcesVotes, AnyVotes, DualVotes, Votes

MULTISCALE, AUTHORS, ORACLE = "multiscale", "multiscale-authors", "oracle"
TWO_STAGE = ("paper", "nosplit", "fusion")
ENVELOPE = "best fixed sigma at each radius"
NO_METHOD = "none: a property of the curves, which no one classifier has"


@dataclass(frozen=True, eq=False)
class Method:
    """One way to certify, applied to all concluded inputs of a ledger, in the order of their positions.

    ``guarantee`` is a sentence, and ``guaranteed`` whether there is one that these votes bear out. ``certificates`` is
    None where a method gives none. ``votes_per_input`` is what the method would have drawn for each input by itself or,
    in an adaptive run, what was drawn; empty where that is not known.
    """

    name: str
    title: str
    guarantee: str
    guaranteed: bool
    results: Results
    certificates: Certificates | None
    votes_per_input: NDArray[np.int64]


def methods(
    ledger: Ledger, names: Sequence[str] | None = None, alpha: float | None = None, report: Report = silent
) -> dict[str, Method]:
    """The methods of these names, or all that the ledger's votes were gathered for, by name.

    Names: ``sigma-0.25`` and so on, ``multiscale``, ``multiscale-authors``, ``oracle``, every two-stage rule
    (``paper``, ``nosplit``, ``fusion``, ...), and ``aces-0.5`` and so on. A name whose votes are missing is refused
    with what to run; without names it is left out. An adaptive run took its votes for one rule, and that is its only
    method without names. ``alpha`` is the run's own unless given.
    """
    source = _Source(ledger, read_sampled(ledger), ledger.header.alpha if alpha is None else alpha)
    wanted, found = source.names if names is None else names, {}
    for number, name in enumerate(wanted):
        report("deriving methods", number, len(wanted))
        try:
            found[name] = source.method(name)
        except (UnusableVotes, BadTable):  # of votes or labels that are not there
            if names is not None:
                raise
    return found


def own_method(header: Header) -> str:
    """The name of the method under which a run was certified."""
    return f"sigma-{header.sigmas[0]:g}" if header.sigma_e is None else header.rule


def fixed_sigmas(found: Iterable[Method]) -> list[Results]:
    """The results of those methods that are a fixed sigma, whatever ledger their names begin with."""
    return [m.results for m in found if m.name.rpartition("/")[2].startswith("sigma-") and m.certificates is not None]


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


@dataclass(frozen=True)
class _Source:
    """The votes of a ledger, and how each method is made from them."""

    ledger: Ledger
    sampled: Sampled
    alpha: float

    @cached_property
    def experts(self) -> dict[str, Votes]:
        """The votes at each fixed sigma, by the name of its method, sigma ascending."""
        return {f"sigma-{v.sigma:g}": v for v in sorted(experts(self.sampled), key=lambda v: v.sigma)}

    @property
    def names(self) -> list[str]:
        """Every method that complete votes of this kind of model would allow; of an adaptive run, its own."""
        votes, header = self.sampled.votes, self.ledger.header
        if header.looks:
            return [own_method(header)]
        if isinstance(votes, Votes):
            return list(self.experts)
        if isinstance(votes, AcesVotes):
            return [*self.experts, *map(aces_rule, votes.thresholds)]
        rules = dict.fromkeys((*TWO_STAGE, header.rule))
        return [*self.experts, MULTISCALE, AUTHORS, *rules, ORACLE]

    def method(self, name: str) -> Method:
        """One method by name."""
        if name in self.experts:
            return self._fixed(name, self.experts[name])
        others: dict[str, Callable[[], Method]] = {
            MULTISCALE: lambda: self._cascade(
                name,
                "Multiscale, sound levels",
                f"{self._sound}; independent noise at each stage, every bound at alpha/2",
                True,
                multiscale,
            ),
            AUTHORS: lambda: self._cascade(
                name,
                "Multiscale, authors' levels",
                f"none at level {self.alpha:g}: the authors' levels and asymptotic interval, for comparison only",
                False,
                multiscale_authors,
            ),
            ORACLE: self._oracle,
        }
        if name in others:
            self._demand(name, DualVotes)
            return others[name]()
        if name.startswith("sigma-"):
            raise BadSetting(f"{self.ledger.path} has no method {name}; its sigmas are {', '.join(self.experts)}")
        try:
            found = rule(name)
        except BadSetting as unknown:
            raise BadSetting(
                f"there is no method {name!r}; {self.ledger.path} has {', '.join(self.names)}"
            ) from unknown
        self._demand(name, found.reads)
        return self._aces(found) if found.reads is AcesVotes else self._two_stage(found)

    @property
    def _sound(self) -> str:
        return f"wrong with probability at most {self.alpha:g} for each input"

    @property
    def _votes_of_a_stage(self) -> int:
        return self.ledger.header.n0 + self.ledger.header.n

    def _fixed(self, name: str, votes: Votes) -> Method:
        if lacking := self._lacking(votes):
            raise self._missing(name, lacking)
        one = rule("cohen")
        one.check(votes.plan, self.alpha)
        certificates = one.certify(votes, self.alpha)
        cost = np.full(len(votes), self._votes_of_a_stage)
        return self._made(name, f"sigma {votes.sigma:g} alone (Cohen et al.)", self._sound, True, certificates, cost)

    def _two_stage(self, found: Rule) -> Method:
        votes = self.sampled.votes
        assert isinstance(votes, DualVotes)
        certificates = self._derived(found)
        cost = np.full(len(votes), 2 * self._votes_of_a_stage)
        # An adaptive run left out experts on purpose, and not because they could not help.
        if found.helpful is not None and not votes.router.plan.adaptive:
            short = found.helpful(votes, self.alpha).any(axis=0)
            if short.any():
                raise self._missing(
                    found.name,
                    f"{short.sum()} of {len(votes)} inputs have no votes of an expert that could raise their radius "
                    f"(the first is {self.sampled.ids[short][0]})",
                )
            cost = cost + self.ledger.header.n * found.helpful(_chosen_only(votes), self.alpha).sum(axis=0)
        return self._made(found.name, f"dual, rule {found.name}", self._sound, True, certificates, cost)

    def _derived(self, found: Rule) -> Certificates:
        """What a rule says of all votes; where some are missing, what to run."""
        found.check(self.ledger.header.plan, self.alpha)
        try:
            return found.certify(self.sampled.votes, self.alpha)
        except UnusableVotes as lacking:
            raise self._missing(found.name, str(lacking)) from lacking

    def _aces(self, found: Rule) -> Method:
        votes = self.sampled.votes
        assert isinstance(votes, AcesVotes)
        certificates = self._derived(found)
        smoothed = certificates.sigma_c > 0
        cost = self._votes_of_a_stage + np.where(smoothed, self._votes_of_a_stage, 1)
        title = f"ACES, entropy up to {aces_threshold(found.name):g} (Horvath et al.)"
        return self._made(found.name, title, self._sound, True, certificates, cost)

    def _cascade(
        self,
        name: str,
        title: str,
        guarantee: str,
        guaranteed: bool,
        formula: Callable[[Sequence[Votes], float], Certificates],
    ) -> Method:
        stages = list(self.experts.values())
        demand_one_look(f"method {name}", *stages)
        try:
            certificates = formula(stages, self.alpha)
        except UnusableVotes as unusable:
            lacking = "; ".join(filter(None, map(self._lacking, stages)))
            raise self._missing(name, lacking) from unusable
        sigmas = np.array([v.sigma for v in stages])
        reached = (sigmas[:, None] >= certificates.sigma_c).sum(axis=0)
        return self._made(name, title, guarantee, guaranteed, certificates, reached * self._votes_of_a_stage)

    def _oracle(self) -> Method:
        """The sigma with the largest radius among those that are right; where none is, the smallest sigma."""
        sampled = self.sampled
        demand_one_look(f"method {ORACLE}", *self.experts.values())
        fixed = [self._fixed(name, votes).results for name, votes in self.experts.items()]
        if not fixed[0].labelled.all():
            raise BadTable(f"the oracle looks at labels, and {self.ledger.path} has inputs without; give labelled data")
        best = np.stack([np.where(r.correct, r.radius, -1.0) for r in fixed]).argmax(axis=0)
        rows = np.arange(len(best))
        return Method(
            ORACLE,
            "best sigma, told by the label",
            "none: it looks at the label, so it bounds what routing could reach and is no method",
            False,
            Results(
                ids=sampled.ids,
                index=sampled.index,
                label=sampled.label,
                prediction=np.stack([r.prediction for r in fixed])[best, rows],
                radius=np.stack([r.radius for r in fixed])[best, rows],
                seconds=sampled.seconds,
                sigma_c=np.array([v.sigma for v in self.experts.values()])[best],
            ),
            None,
            np.full(len(best), len(fixed) * self._votes_of_a_stage),
        )

    def _made(
        self,
        name: str,
        title: str,
        guarantee: str,
        guaranteed: bool,
        certificates: Certificates,
        cost: NDArray[np.int64],
    ) -> Method:
        header = self.ledger.header
        if header.looks:
            assert not isinstance(self.sampled.votes, AcesVotes), "refused by the header"
            cost = _held(self.sampled.votes)
            title = f"{title}, adaptive, at most n {header.n:,}"
            if name != own_method(header):
                guarantee += (
                    f"; but these votes were taken for {own_method(header)} and stop where that needs no more, so that "
                    "the radii are lower than votes of its own would give"
                )
        return Method(name, title, guarantee, guaranteed, self.sampled.results(certificates), certificates, cost)

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

    def _demand(self, name: str, kind: type[AnyVotes]) -> None:
        if isinstance(self.sampled.votes, kind):
            return
        if kind is AcesVotes:
            raise UnusableVotes(
                f"method {name} needs votes of a selector and of a core network, which {self.ledger.path} does not "
                "have; run `dualrs certify --core ... --thresholds ...` into another ledger"
            )
        held = "one sigma" if isinstance(self.sampled.votes, Votes) else "one sigma with a core network"
        raise UnusableVotes(
            f"method {name} needs votes at several sigmas and of a router, and {self.ledger.path} is of {held}; "
            "run `dualrs certify --all-votes` with a router into another ledger"
        )


def _held(votes: Votes | DualVotes) -> NDArray[np.int64]:
    """How many votes there are on each input."""
    every = (votes,) if isinstance(votes, Votes) else (votes.router, *votes.experts)
    return np.asarray(sum(v.selection.sum(axis=1) + v.sampled for v in every))


def _chosen_only(votes: DualVotes) -> DualVotes:
    """The votes of the router and of the expert that it selects; the others as if not sampled."""
    chosen = top(votes.router)

    def kept(number: int, expert: Votes) -> Votes:
        keep = (chosen == number)[:, None]
        return replace(expert, selection=expert.selection * keep, estimation=expert.estimation * keep)

    return DualVotes(votes.router, tuple(kept(i, e) for i, e in enumerate(votes.experts)))
