"""Tune: which confidences and thresholds suit rule `cascade`, chosen on inputs that are set aside.

Enters: a ledger with the class votes of every sigma and their confidences. Leaves: the form of the rule with the
highest certified accuracy over some radii, what others give, and what choosing so gives on inputs left out of it. The
choice is made after these votes, so the chosen rule certifies other votes, on other inputs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import MAJORITY, cascade
from dualrs.errors import BadSetting, BadTable, UnusableVotes
from dualrs.report.accuracy import certified
from dualrs.report.bootstrap import Hits, mean_interval
from dualrs.report.compare import Difference
from dualrs.schemes import rule
from dualrs.schemes.form import CASCADE, Form
from dualrs.schemes.several import Several
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Sampled, demand_certificates, read_sampled
from dualrs.storage.verify import Report, silent
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII

FEWEST = 20  # inputs; fewer choose by chance
FOLDS = 5
ALL_TRIED = 1_000  # forms, up to which every one is tried
_DIGITS = 9  # of objectives that are compared: what differs less is a tie

PLAIN = Form()

Setting = tuple[float, float]  # the confidence and the threshold of one stage
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Objective:
    """The mean of certified accuracy over radii; weighted, if there are weights."""

    radii: tuple[float, ...] = RADII
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.radii):
            raise BadSetting(f"{len(self.weights)} weights for {len(self.radii)} radii; give one for each")
        if not all(0 <= w < np.inf for w in self.weights) or not sum(self.shares):
            raise BadSetting(f"weights are finite, not negative and not all zero, got {list(self.weights)}")

    @property
    def shares(self) -> Floats:
        """How much each radius counts; they add up to 1."""
        given = np.asarray(self.weights or (1.0,) * len(self.radii), dtype=np.float64)
        return np.asarray(given / (given.sum() or np.inf))


@dataclass(frozen=True)
class Tried:
    """What a form, or a way to choose one, gives; ``gain`` is over the plain cascade, with its bootstrap interval."""

    what: str
    rule: str
    accuracy: tuple[float, ...]
    objective: float
    gain: Difference | None


@dataclass(frozen=True)
class Tuning:
    """The chosen form, and what stands behind the choice.

    ``rows`` are the plain cascade, the best form for each number of stages that may pass, and the chosen one, all on
    the inputs of the choice. ``elsewhere`` is what choosing gives on inputs left out of the choice, and ``in_folds``
    has what was chosen each time. ``curve`` has the objective for each confidence of the noisiest stage, with the
    other settings as chosen.
    """

    chosen: Form
    ids: tuple[str, ...]
    objective: Objective
    rows: tuple[Tried, ...]
    elsewhere: Tried
    in_folds: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    tried: int
    all_tried: bool

    @property
    def optimism(self) -> float:
        """How much better the chosen form looks on its own inputs than choosing does on others."""
        return self.rows[-1].objective - self.elsewhere.objective


def tune(
    ledger: Ledger,
    objective: Objective | None = None,
    thresholds: Sequence[float] = (MAJORITY,),
    report: Report = silent,
) -> Tuning:
    """Choose the confidence of each stage, and its threshold among some, by the votes of a ledger.

    Every recorded confidence, and none, is tried at every stage; plain majority is among the thresholds anyway. Up to
    `ALL_TRIED` forms all are tried; beyond that, one stage after the other is improved, beginning with the plain
    cascade, until none can be. Ties go to the simpler form.
    """
    wanted = objective or Objective()
    search = _Search(_usable(ledger), ledger.header.alpha, wanted, thresholds, report)
    chosen = search.best(np.ones(len(search.sampled.ids), dtype=np.bool_))
    rows = [search.tried("plain", PLAIN)]
    for passing, best in search.by_passing():
        stages = "no stage" if not passing else f"{passing} stage{'s' * (passing > 1)}"
        if best != PLAIN:
            rows.append(search.tried(f"{stages} may pass", best))
    rows.append(search.tried("chosen", chosen))
    in_folds, elsewhere = search.cross_validated()
    curve = [(c, Form((c, *chosen.confidences[1:]), chosen.thresholds)) for c in search.confidences]
    return Tuning(
        chosen,
        tuple(search.sampled.ids.tolist()),
        wanted,
        tuple(rows),
        elsewhere,
        in_folds,
        tuple((confidence, float(search.values(form).mean())) for confidence, form in curve),
        search.count,
        search.all_tried,
    )


def _usable(ledger: Ledger) -> Sampled:
    """The votes of a ledger that a cascade can be tuned on; refuses others with what to run."""
    demand_certificates(ledger)
    header, path = ledger.header, ledger.path
    if not isinstance(header.scheme, Several):
        raise UnusableVotes(
            f"{path} is a run of kind {header.scheme.name}, and a cascade is tuned on votes at several sigmas; run "
            "`dualrs certify` with --sigmas alone"
        )
    if header.looks:
        raise UnusableVotes(f"{path} is an adaptive run, which stopped where its own rule needed no more; fix n")
    if not header.scheme.confidences:
        raise UnusableVotes(
            f"the votes of {path} do not tell how sure the network was; sample again with "
            "--confidences 0.3,0.4,0.5,0.6 and --all-votes"
        )
    rule(CASCADE).check(header.plan, header.alpha)
    sampled = read_sampled(ledger)
    if len(sampled.ids) < FEWEST:
        raise UnusableVotes(
            f"{path} has {len(sampled.ids)} finished inputs; with fewer than {FEWEST}, chance would choose: sample more"
        )
    if not sampled.complete.all():
        missing = sampled.ids[~sampled.complete]
        raise UnusableVotes(
            f"{len(missing)} of {len(sampled.ids)} inputs of {path} lack votes at some sigma (the first is "
            f"{missing[0]}); sample with --all-votes into another ledger"
        )
    unlabelled = sampled.ids[sampled.label < 0]
    if len(unlabelled):
        raise BadTable(
            f"{len(unlabelled)} of {len(sampled.ids)} inputs of {path} have no label (the first is {unlabelled[0]}), "
            "and accuracy is undefined without labels; give labelled data"
        )
    return sampled


class _Search:
    """The forms of a cascade on some votes, and what each gives on every input, computed once."""

    def __init__(
        self, sampled: Sampled, alpha: float, objective: Objective, thresholds: Sequence[float], report: Report
    ) -> None:
        self.sampled, self._alpha, self._objective, self._report = sampled, alpha, objective, report
        stages = sorted(sampled.view.experts, key=lambda e: -e.sigma)
        joint = stages[0].joint
        assert joint is not None, "checked by `_usable`"
        self.confidences = (0.0, *joint[0].confidences)
        self._heard = [{c: stage.confident(c) for c in self.confidences} for stage in stages]
        Form(thresholds=tuple(thresholds))  # refuses what is none
        self._options: list[Setting] = [*product(self.confidences, sorted({MAJORITY, *thresholds}))]
        self.all_tried = len(self._options) ** len(stages) <= ALL_TRIED
        self._values: dict[Form, Floats] = {}
        if self.all_tried:
            every = sorted((_form(s) for s in product(self._options, repeat=len(stages))), key=_simplicity)
            for done, form in enumerate(every):
                report("trying forms", done, len(every))
                self.values(form)

    @property
    def count(self) -> int:
        """How many forms were tried."""
        return len(self._values)

    def hits(self, form: Form) -> Hits:
        """Which inputs are certified right at each radius; shape (radii, inputs)."""
        passing = [*form.confidences, *[0.0] * (len(self._heard) - len(form.confidences))]
        stages = [heard[confidence] for heard, confidence in zip(self._heard, passing, strict=True)]
        certificates = Certificates.conclude(cascade(stages, self._alpha, form.thresholds))
        return certified(self.sampled.results(certificates), self._objective.radii)

    def values(self, form: Form) -> Floats:
        """The objective on each input, shape (inputs,): its mean is the objective."""
        if form not in self._values:
            self._values[form] = self._objective.shares @ self.hits(form)
        return self._values[form]

    def best(self, rows: Rows) -> Form:
        """The form with the highest objective on some inputs, the simplest among equals."""
        if self.all_tried:
            return self._first(self._values, rows)
        settings = [(0.0, MAJORITY)] * len(self._heard)
        found = PLAIN
        while True:  # one stage after the other is improved; it ends, as each step is better, or as good and simpler
            before = found
            for stage in range(len(settings)):
                more = len(self._options) * (len(settings) - stage)
                self._report("trying forms", self.count, self.count + more)
                there = {_form([*settings[:stage], o, *settings[stage + 1 :]]): o for o in self._options}
                found = self._first(there, rows)
                settings[stage] = there[found]
            if found == before:
                return found

    def _first(self, forms: Iterable[Form], rows: Rows) -> Form:
        simple = sorted(forms, key=_simplicity)
        return max(simple, key=lambda form: round(float(self.values(form)[rows].mean()), _DIGITS))

    def by_passing(self) -> Iterator[tuple[int, Form]]:
        """The best form that was tried for each number of stages that may pass."""
        everyone = np.ones(len(self.sampled.ids), dtype=np.bool_)
        for passing in range(len(self._heard) + 1):
            if forms := [form for form in self._values if _passing(form) == passing]:
                yield passing, self._first(forms, everyone)

    def tried(self, what: str, form: Form) -> Tried:
        """What a form gives on all inputs."""
        return self._judged(what, form.name, self.hits(form), None if form == PLAIN else self.values(form))

    def cross_validated(self) -> tuple[tuple[str, ...], Tried]:
        """The choice on all inputs but those of one fold, for each, and what it gives on those."""
        fold = np.arange(len(self.sampled.ids)) % FOLDS
        hits = np.zeros((len(self._objective.radii), len(fold)), dtype=np.bool_)
        names = []
        for number in range(FOLDS):
            held = fold == number
            form = self.best(~held)
            hits[:, held] = self.hits(form)[:, held]
            names.append(form.name)
        said = names[0] if len(set(names)) == 1 else f"{len(set(names))} forms"
        return tuple(names), self._judged("cross-validated", said, hits, self._objective.shares @ hits)

    def _judged(self, what: str, name: str, hits: Hits, values: Floats | None) -> Tried:
        accuracy = hits.mean(axis=1)
        gain = None
        if values is not None:
            more = values - self.values(PLAIN)
            gain = Difference(float(more.mean()), *mean_interval(more))
        return Tried(what, name, tuple(accuracy.tolist()), float(self._objective.shares @ accuracy), gain)


def _form(settings: Iterable[Setting]) -> Form:
    """The form with these settings; a threshold of one half at its end goes without saying."""
    confidences, thresholds = (list(numbers) for numbers in zip(*settings, strict=True))
    while thresholds and thresholds[-1] == MAJORITY:
        thresholds.pop()
    return Form(tuple(confidences), tuple(thresholds))


def _passing(form: Form) -> int:
    """How many stages may pass."""
    return sum(confidence > 0 for confidence in form.confidences)


def _simplicity(form: Form) -> tuple[int, int, int, tuple[float, ...], tuple[float, ...]]:
    """What sorts the simpler first: fewer stages that may pass, fewer thresholds, fewer and smaller numbers."""
    said = len(form.confidences) + len(form.thresholds)
    return _passing(form), sum(t != MAJORITY for t in form.thresholds), said, form.confidences, form.thresholds
