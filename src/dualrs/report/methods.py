"""Methods: every way to certify that the votes of one ledger allow, side by side. Sample once, certify every way.

Enters: a ledger that `dualrs certify` wrote. Leaves: per method its results, its guarantee in words, and the votes that
it alone would have drawn. Side by side is fine; the best method per input, or one chosen after the votes, is not a
certificate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates, Rule, rule
from dualrs.certificates.multiscale import multiscale
from dualrs.certificates.multiscale_authors import multiscale_authors
from dualrs.certificates.selection import top
from dualrs.errors import BadSetting, BadTable, UnusableVotes
from dualrs.report.accuracy import RADII, certified_accuracy
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Results, Sampled, read_sampled
from dualrs.votes import DualVotes, Votes

MULTISCALE, AUTHORS, ORACLE = "multiscale", "multiscale-authors", "oracle"
TWO_STAGE = ("paper", "nosplit", "fusion")


@dataclass(frozen=True, eq=False)
class Method:
    """One way to certify, applied to all concluded inputs of a ledger, in the order of their positions.

    ``guarantee`` is a sentence, which says so where there is none. ``certificates`` is None where a method gives none.
    ``votes_per_input`` is what the method would have drawn for each input by itself; empty where that is not known.
    """

    name: str
    title: str
    guarantee: str
    results: Results
    certificates: Certificates | None
    votes_per_input: NDArray[np.int64]


def methods(ledger: Ledger, names: Sequence[str] | None = None, alpha: float | None = None) -> dict[str, Method]:
    """The methods of these names, or all that the ledger's votes allow, by name.

    Names: ``sigma-0.25`` and so on, ``multiscale``, ``multiscale-authors``, ``oracle``, and every two-stage rule
    (``paper``, ``nosplit``, ``fusion``, ...). A name whose votes are missing is refused with what to run; without
    names it is left out. ``alpha`` is the run's own unless given.
    """
    source = _Source(ledger, read_sampled(ledger), ledger.header.alpha if alpha is None else alpha)
    if names is not None:
        return {name: source.method(name) for name in names}
    found = {}
    for name in source.names:
        try:
            found[name] = source.method(name)
        except (UnusableVotes, BadTable):  # of votes or labels that are not there
            continue
    return found


def envelope(fixed: Sequence[Results], radii: Sequence[float] = RADII) -> NDArray[np.float64]:
    """The largest certified accuracy of several fixed sigmas at each radius; shape (radii,).

    A property of their curves: another sigma may attain it at each radius, so no classifier has this curve.
    """
    return np.asarray(np.max([certified_accuracy(results, radii) for results in fixed], axis=0))


@dataclass(frozen=True)
class _Source:
    """The votes of a ledger, and how each method is made from them."""

    ledger: Ledger
    sampled: Sampled
    alpha: float

    @cached_property
    def experts(self) -> dict[str, Votes]:
        """The votes at each fixed sigma, by the name of its method, sigma ascending."""
        votes = self.sampled.votes
        every = votes.experts if isinstance(votes, DualVotes) else (votes,)
        return {f"sigma-{v.sigma:g}": v for v in sorted(every, key=lambda v: v.sigma)}

    @property
    def names(self) -> list[str]:
        """Every method that complete votes of this kind of model would allow."""
        if isinstance(self.sampled.votes, Votes):
            return list(self.experts)
        rules = dict.fromkeys((*TWO_STAGE, self.ledger.header.rule))
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
                multiscale,
            ),
            AUTHORS: lambda: self._cascade(
                name,
                "Multiscale, authors' levels",
                f"none at level {self.alpha:g}: the authors' levels and asymptotic interval, for comparison only",
                multiscale_authors,
            ),
            ORACLE: self._oracle,
        }
        if name in others:
            self._demand_two_stages(name)
            return others[name]()
        if name.startswith("sigma-"):
            raise BadSetting(f"{self.ledger.path} has no method {name}; its sigmas are {', '.join(self.experts)}")
        try:
            found = rule(name)
        except BadSetting as unknown:
            raise BadSetting(
                f"there is no method {name!r}; {self.ledger.path} has {', '.join(self.names)}"
            ) from unknown
        self._demand_two_stages(name)
        return self._two_stage(found)

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
        return self._made(name, f"sigma {votes.sigma:g} alone (Cohen et al.)", self._sound, certificates, cost)

    def _two_stage(self, found: Rule) -> Method:
        votes = self.sampled.votes
        assert isinstance(votes, DualVotes)
        found.check(votes.router.plan, self.alpha)
        try:
            certificates = found.certify(votes, self.alpha)
        except UnusableVotes as lacking:
            raise self._missing(found.name, str(lacking)) from lacking
        cost = np.full(len(votes), 2 * self._votes_of_a_stage)
        if found.helpful is not None:
            short = found.helpful(votes, self.alpha).any(axis=0)
            if short.any():
                raise self._missing(
                    found.name,
                    f"{short.sum()} of {len(votes)} inputs have no votes of an expert that could raise their radius "
                    f"(the first is {self.sampled.ids[short][0]})",
                )
            cost = cost + self.ledger.header.n * found.helpful(_chosen_only(votes), self.alpha).sum(axis=0)
        return self._made(found.name, f"dual, rule {found.name}", self._sound, certificates, cost)

    def _cascade(
        self, name: str, title: str, guarantee: str, formula: Callable[[Sequence[Votes], float], Certificates]
    ) -> Method:
        stages = list(self.experts.values())
        try:
            certificates = formula(stages, self.alpha)
        except UnusableVotes as unusable:
            lacking = "; ".join(filter(None, map(self._lacking, stages)))
            raise self._missing(name, lacking) from unusable
        sigmas = np.array([v.sigma for v in stages])
        reached = (sigmas[:, None] >= certificates.sigma_c).sum(axis=0)
        return self._made(name, title, guarantee, certificates, reached * self._votes_of_a_stage)

    def _oracle(self) -> Method:
        """The sigma with the largest radius among those that are right; where none is, the smallest sigma."""
        sampled = self.sampled
        fixed = [self._fixed(name, votes).results for name, votes in self.experts.items()]
        if not fixed[0].labelled.all():
            raise BadTable(f"the oracle looks at labels, and {self.ledger.path} has inputs without; give labelled data")
        best = np.stack([np.where(r.correct, r.radius, -1.0) for r in fixed]).argmax(axis=0)
        rows = np.arange(len(best))
        return Method(
            ORACLE,
            "best sigma, told by the label",
            "none: it looks at the label, so it bounds what routing could reach and is no method",
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
        self, name: str, title: str, guarantee: str, certificates: Certificates, cost: NDArray[np.int64]
    ) -> Method:
        return Method(name, title, guarantee, self.sampled.results(certificates), certificates, cost)

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

    def _demand_two_stages(self, name: str) -> None:
        if isinstance(self.sampled.votes, Votes):
            raise UnusableVotes(
                f"method {name} needs votes at several sigmas and of a router, and {self.ledger.path} is of one sigma; "
                "run `dualrs certify --all-votes` with a router into another ledger"
            )


def _chosen_only(votes: DualVotes) -> DualVotes:
    """The votes of the router and of the expert that it selects; the others as if not sampled."""
    chosen = top(votes.router)

    def kept(number: int, expert: Votes) -> Votes:
        keep = (chosen == number)[:, None]
        return replace(expert, selection=expert.selection * keep, estimation=expert.estimation * keep)

    return DualVotes(votes.router, tuple(kept(i, e) for i, e in enumerate(votes.experts)))
