"""The settings of the simulations: every rule, on every problem that is about it, in every way that votes may come.

Enters: a seed, which decides where on the edge of its bounds each problem is placed, and with how many candidates.
Leaves: settings that draw trials and count false certificates. A twin is a rule with its levels raised: doubled, or
raised until they do harm where a rule has a factor in hand (see tests/validity); it must be caught.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from unittest.mock import patch

import numpy as np
from numpy.random import Generator

from dualrs.certificates import Certificates, predict, predict_dual
from dualrs.certificates.aces import aces
from dualrs.certificates.multiscale import multiscale
from dualrs.schemes import AcesVotes, DualVotes, rule
from dualrs.theory import looks as theory
from soak.cascades import CASCADES
from soak.edges import Spot
from soak.half_spaces import COUPLINGS, Problem, searched_radius
from soak.problems import OTHER, PLACED, Maker, Shares, hostile_coin_toss, tied_candidates, tied_classes
from soak.setting import FIXED, LOOKS, Errors, Setting, Votes, false_claims
from soak.staged_settings import staged_settings
from soak.stops import STOPS, by_the_policy, fine, straddling

SHARES = {
    "cohen": Shares(1, 1, 1, 1),
    "paper": Shares(1 / 2, 1 / 2, 1 / 2, 1 / 2),
    "paper-1:4": Shares(1 / 5, 4 / 5, 4 / 5, 1 / 2),
    "nosplit": Shares(1, 1, 1, 1 / 2),
    "fusion": Shares(1, 1 / 2, 1 / 4, 1 / 2),
    "fusion-pair": Shares(1 / 2, 1 / 2, 1 / 4, 1 / 4),
}
ALL_RULES = ("paper", "paper-1:4", "nosplit", "fusion", "fusion-pair")
FUSIONS = ALL_RULES[3:]
# Who has something to say about a problem, with how many candidates at least, and which noise can matter there.
ABOUT: dict[str, tuple[Sequence[str], int, Sequence[str]]] = {
    "the class changes first": (ALL_RULES, 2, COUPLINGS[:3]),
    "the routing changes first": (ALL_RULES, 2, (COUPLINGS[0], COUPLINGS[3])),
    "class and routing change together": (ALL_RULES, 2, (COUPLINGS[0], COUPLINGS[1], COUPLINGS[3])),
    "the routing and a rival change together": (FUSIONS, 2, COUPLINGS),
    "the router has no majority": (FUSIONS, 3, COUPLINGS),
    "all candidates tie at the boundary": (FUSIONS, 3, COUPLINGS[:1]),
    "three classes, none with a majority": (FUSIONS[1:], 2, COUPLINGS[:2]),
    "a coin toss between friends": (FUSIONS, 2, (COUPLINGS[0], COUPLINGS[2], COUPLINGS[3])),
    "a coin toss between foes": (ALL_RULES, 2, COUPLINGS[:1]),
    "the class is a coin toss": (ALL_RULES, 2, COUPLINGS[:2]),
}
MOST = 5  # candidates
THRESHOLD = 0.5  # of ACES


@lru_cache
def all_settings(seed: int) -> list[Setting]:
    """Every setting; the same seed gives the same ones in the same order."""
    rng = np.random.default_rng([seed, 0])
    two = [*_two_stages(rng), *_one_stage(rng), *_policy(rng), *_cascades(rng), *_aces(rng), *_predict(rng), *_twins()]
    return [*two, *staged_settings(rng, MOST)]  # last, so that the others keep their seeds


def _near(rng: Generator) -> float:
    return float(rng.choice(np.arange(0.60, 0.80, 0.02)).round(2))


def _two_stages(rng: Generator) -> Iterator[Setting]:
    for case, (names, fewest, couplings) in ABOUT.items():
        for name, coupling, votes in ((n, c, v) for n in names for c in couplings for v in (*FIXED, *LOOKS)):
            for stop in STOPS:
                if (stop == "stopped where false" and votes is not LOOKS[0]) or (
                    stop != "to the end" and votes in FIXED[1:]
                ):
                    continue
                candidates = int(rng.integers(fewest, MOST + 1))
                yield _dual(name, case, candidates, coupling, votes, stop, _near(rng))


def _dual(
    name: str, case: str, candidates: int, coupling: str, votes: Votes, stop: str, near: float, factor: float = 1.0
) -> Setting:
    """A two-stage rule on one of the placed problems, at a multiple of alpha if it is a twin."""

    def make() -> Errors:
        problem = _checked(PLACED[case], SHARES[name], votes, candidates, near, factor)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), coupling, trials, rng)
            versions = STOPS[stop](drawn, rng)
            found = (rule(name).certify(v, factor * votes.alpha) for v in versions)
            return int(np.logical_or.reduce([false_claims(f, problem) for f in found]).sum())

        return errors

    what = f"{case}, {candidates} candidates, noise {coupling}, {votes.name}, {stop}"
    return Setting(name, what, votes.alpha, make, twin=factor > 1, weight=0.5 if stop == "stopped where false" else 1.0)


def _one_stage(rng: Generator) -> Iterator[Setting]:
    for case in ("the class changes first", "the class is a coin toss"):
        for votes in (*FIXED, *LOOKS):
            yield _cohen(case, votes, _near(rng))


def _cohen(case: str, votes: Votes, near: float, factor: float = 1.0, shares: bool = True) -> Setting:
    """Rule cohen on the chosen expert alone; a twin may spend its whole level at every look."""

    def make() -> Errors:
        problem = _checked(PLACED[case], SHARES["cohen"], votes, 2, near, factor)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), "apart", trials, rng).experts[0]
            if shares:
                return int(false_claims(rule("cohen").certify(drawn, factor * votes.alpha), problem).sum())
            with patch.object(theory, "shares", lambda looks: np.ones(len(looks))):
                return int(false_claims(rule("cohen").certify(drawn, votes.alpha), problem).sum())

        return errors

    what = f"{case}, {votes.name}" + ("" if shares else ", every look at the full level")
    return Setting("cohen", what, votes.alpha, make, twin=factor > 1 or not shares)


def _policy(rng: Generator) -> Iterator[Setting]:
    """The library's own adaptive policy, whose trials take milliseconds each."""
    cases = [
        ("cohen", "the class changes first"),
        ("paper", "the routing changes first"),
        ("nosplit", "class and routing change together"),
        ("fusion", "the routing and a rival change together"),
        ("fusion-pair", "the class changes first"),
    ]
    for (name, case), coupling in ((c, k) for c in cases for k in COUPLINGS[:2]):
        for target in (straddling, fine):
            yield _driven(name, case, coupling, target.__name__, int(rng.integers(2, MOST + 1)), _near(rng))


def _driven(name: str, case: str, coupling: str, target: str, candidates: int, near: float) -> Setting:
    votes = LOOKS[0]

    def make() -> Errors:
        problem = _checked(PLACED[case], SHARES[name], votes, candidates, near, 1.0)
        wanted = (straddling if target == "straddling" else fine)(problem.radius)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), coupling, trials, rng)
            taken = by_the_policy(drawn.experts[0] if name == "cohen" else drawn, rule(name), votes.alpha, wanted)
            return int(false_claims(rule(name).certify(taken, votes.alpha), problem).sum())

        return errors

    what = f"{case}, {candidates} candidates, noise {coupling}, driven by the policy to a {target} target"
    return Setting(name, what, votes.alpha, make, weight=0.01)


def _cascades(rng: Generator) -> Iterator[Setting]:
    for case in CASCADES:
        for votes in FIXED:
            for stages in range(2, MOST + 1):
                yield _cascade(case, stages, votes, float(rng.choice([0.60, 0.62, 0.64])))


def _cascade(case: str, stages: int, votes: Votes, near: float, factor: float = 1.0) -> Setting:
    def make() -> Errors:
        problem = CASCADES[case](Spot(votes.plan(), factor * votes.alpha), stages, near)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), trials, rng)
            return int(false_claims(Certificates.conclude(multiscale(drawn, factor * votes.alpha)), problem).sum())

        return errors

    what = f"{case}, {stages} stages, {votes.name}"
    return Setting("multiscale", what, votes.alpha, make, twin=factor > 1)


def _aces(rng: Generator) -> Iterator[Setting]:
    cases = ("the class changes first", "the routing changes first", "class and routing change together")
    for case in (*cases, "a coin toss between foes", "the class is a coin toss"):
        for coupling in (COUPLINGS[0], COUPLINGS[2], COUPLINGS[3]):
            for votes in FIXED:
                yield _with_core(case, coupling, votes, _near(rng))


def _with_core(case: str, coupling: str, votes: Votes, near: float, factor: float = 1.0) -> Setting:
    """Rule aces: the router is the selector, the first candidate the classifier, and the core always says OTHER."""

    def make() -> Errors:
        problem = _checked(PLACED[case], SHARES["paper"], votes, 2, near, factor)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), coupling, trials, rng)
            core = np.tile(np.eye(problem.classes, dtype=np.int64)[OTHER], (trials, 1))
            both = AcesVotes(drawn.router, drawn.experts[0], core, (THRESHOLD,))
            return int(false_claims(aces(both, factor * votes.alpha, THRESHOLD), problem).sum())

        return errors

    return Setting("aces", f"{case}, noise {coupling}, {votes.name}", votes.alpha, make, twin=factor > 1)


TIED: dict[str, Maker] = {
    "a coin toss between foes": hostile_coin_toss,
    "the class is a coin toss": PLACED["the class is a coin toss"],
    "all candidates tie": tied_candidates,
    "all classes tie": tied_classes,
}


def _predict(rng: Generator) -> Iterator[Setting]:
    for case, votes in ((c, v) for c in TIED for v in FIXED):
        for candidates in range(2, MOST + 1):
            yield _predicted("predict", case, candidates, str(rng.choice(COUPLINGS)), votes)
            if "class" in case:
                yield _predicted("predict, one sigma", case, candidates, "apart", votes)


def _predicted(name: str, case: str, candidates: int, coupling: str, votes: Votes, factor: float = 1.0) -> Setting:
    """PREDICT: an error is a class, not an abstention, other than G's at the input."""

    def make() -> Errors:
        problem = TIED[case](Spot(votes.plan(), votes.alpha), SHARES["paper"], candidates, 0.6)

        def errors(trials: int, rng: Generator) -> int:
            drawn: DualVotes = problem.draw(votes.plan(problem.n0), coupling, trials, rng)
            one = name.endswith("one sigma")
            alpha = factor * votes.alpha
            found = (predict(drawn.experts[0], alpha) if one else predict_dual(drawn, alpha)).prediction
            return int(np.sum((found >= 0) & (found != problem.label)))

        return errors

    what = f"{case}, {candidates} candidates, noise {coupling}, {votes.name}"
    return Setting(name, what, votes.alpha, make, twin=factor > 1)


def _twins() -> Iterator[Setting]:
    small, class_first, routing_first = FIXED[0], "the class changes first", "the routing changes first"
    yield _cohen(class_first, small, 0.7, factor=2)
    yield _cohen("the class is a coin toss", LOOKS[1], 0.7, shares=False)
    for name, case, factor in (
        ("nosplit", class_first, 2),
        ("fusion", class_first, 2),
        ("paper-1:4", routing_first, 2),
        ("paper", routing_first, 4),
        ("fusion-pair", class_first, 4),
    ):
        yield _dual(name, case, 3, "antithetic", small, "to the end", 0.7, factor=factor)
    yield _cascade("the first stage is a coin toss", 3, small, 0.62, factor=2)
    yield _with_core(routing_first, "apart", small, 0.7, factor=4)
    yield _predicted("predict", "a coin toss between foes", 2, "apart", small, factor=8)
    yield _predicted("predict, one sigma", "the class is a coin toss", 2, "apart", small, factor=4)


def _checked(maker: Maker, shares: Shares, votes: Votes, candidates: int, near: float, factor: float) -> Problem:
    """A problem, after a look at whether its radius is where G first changes."""
    problem = maker(Spot(votes.plan(), factor * votes.alpha), shares, candidates, near)
    assert abs(searched_radius(problem) - problem.radius) < 1e-8, "the closed form of the radius is wrong"
    return problem
