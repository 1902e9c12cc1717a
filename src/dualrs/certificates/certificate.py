"""What a certificate says: the class, the radius within which it stands, and why the radius is what it is.

A rule makes `Radii` of bounds. Of radii that rest on real votes `Certificates` are concluded: one entry per input, as
arrays; `Certificate` is one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import MissingExtra
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import round_down
from dualrs.votes import Bounds, Stated, Votes

if TYPE_CHECKING:
    from pandas import DataFrame

    from dualrs.certificates.predict import Prediction

ABSTAIN = -1  # the prediction of an input about which nothing is claimed

Evidence = TypeVar("Evidence", bound=Bounds, covariant=True)
B = TypeVar("B", bound=Bounds)  # the same, for functions


class Outcome(StrEnum):
    """How certification, or prediction, ended."""

    CERTIFIED = "certified"
    PREDICTED = "predicted"
    ROUTER_UNDECIDED = "router undecided"
    CLASS_UNDECIDED = "class undecided"
    STAGE_UNDECIDED = "earlier stage undecided"


CLASS, ROUTER = "class", "router"
RIVAL, STAGE = "rival", "stage"  # with a sigma: another expert that may be asked, or an earlier stage of a cascade


def spell_seed(seed: int) -> str:
    """A seed as people write it: a number if it is small, else in hexadecimal digits. Python and recipes read both."""
    return str(seed) if abs(seed) < 2**32 else hex(seed)


def with_seed(said: str, seed: int | None) -> str:
    """What is said of one input, and the seed if it is known."""
    return said if seed is None else f"{said}; seed {spell_seed(seed)}"


def listed(rows: "Sequence[Certificate] | Sequence[Prediction]", seed: int | None) -> str:
    """Rows under their numbers, and the seed that all have in common."""
    lines = [f"{number}: {rows[number].said}" for number in range(len(rows))]
    return "\n".join(lines if seed is None else [*lines, f"seed {spell_seed(seed)}"])


@dataclass(frozen=True, eq=False)
class Radii(Generic[Evidence]):
    """What a rule makes of bounds, a row per input: a class, the radius of the class, and that of what leads to it.

    ``rival`` is the sigma that limits the latter, NaN where it is not a matter of one sigma, and ``rivals`` what such
    sigmas are called; ``doubt`` is the outcome where it is not decided. ``evidence`` are the bounds behind it all: of
    `Votes` come certificates, of hopes a decision whether to sample on.
    """

    y: NDArray[np.int64]
    sigma_c: Floats
    r_c: Floats
    r_sigma: Floats
    rival: Floats
    evidence: Sequence[Evidence]
    rivals: str = RIVAL
    doubt: Outcome = Outcome.ROUTER_UNDECIDED

    @property
    def radius(self) -> Floats:
        """The smaller of the two; certifies nothing where it is not positive."""
        return np.minimum(self.r_c, self.r_sigma)


@dataclass(frozen=True)
class Certificate:
    """One input: with probability >= 1 - alpha over the noise, no image closer than ``radius`` is classified otherwise.

    ``prediction`` is `ABSTAIN` and ``radius`` 0 where ``outcome`` is neither certified nor predicted; predicted is a
    claim about the input alone, with ``radius`` 0 (rule `aces`). ``r_sigma`` is the radius
    of the routing, ``r_c`` that of the class under the chosen sigma; the smaller one is ``radius``. Either may
    be zero or negative: its bound did not reach what it had to. ``limited_by`` names what holds the radius
    down: "class", "router", "rival s" (the router might answer s, where another class might win), or "stage s" (the
    stage at s, which comes before, might answer another class). The same call with ``seed`` gives the same certificate.
    """

    prediction: int
    radius: float
    sigma_c: float
    r_sigma: float
    r_c: float
    limited_by: str
    outcome: Outcome
    rival: float | None = field(default=None, compare=False)  # the sigma in ``limited_by``; not kept in ledgers
    seed: int | None = field(default=None, compare=False)  # of the noise; None in what a rule makes of bare votes

    @property
    def abstained(self) -> bool:
        """Whether nothing is claimed."""
        return self.prediction == ABSTAIN

    def to_dict(self) -> dict[str, Any]:
        """The fields in plain types, for JSON or a table."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"outcome": self.outcome.value}

    def to_frame(self) -> "DataFrame":
        """One row of a pandas table."""
        return _frame([self.to_dict()])

    @property
    def said(self) -> str:
        """What is claimed, in words."""
        return self.spoken("class {}".format)

    def spoken(self, named: Callable[[int], str]) -> str:
        """The same, where ``named`` says what a class is called."""
        if self.abstained:
            return f"abstains: {self.outcome} {f'at sigma {self.sigma_c:g}' if self.sigma_c else 'without noise'}"
        if self.outcome is Outcome.PREDICTED:
            return f"{named(self.prediction)} without a radius (by the {self.limited_by})"
        within = f"{named(self.prediction)} within L2 radius {round_down(self.radius)}"
        noise = f"sigma {self.sigma_c:g}" if self.sigma_c else "no noise"
        return f"{within} ({noise}, limited by {self.limited_by})"

    def __str__(self) -> str:
        return with_seed(self.said, self.seed)


@dataclass(frozen=True, eq=False)
class Certificates(Sequence[Certificate]):
    """Certificates of many inputs, as arrays; the fields are those of `Certificate`."""

    prediction: NDArray[np.int64]
    radius: Floats
    sigma_c: Floats
    r_sigma: Floats
    r_c: Floats
    limited_by: NDArray[np.str_]
    outcome: NDArray[np.str_]
    rival: Floats | None = None  # NaN where no one sigma limits
    seed: int | None = None  # one for all
    selected: NDArray[np.int64] | None = None  # the class that each is about, also where it abstains; not kept

    @classmethod
    def conclude(cls, found: Radii[Votes | Stated]) -> "Certificates":
        """The smaller radius decides; an input without a positive one abstains, and its limit gives the reason.

        An undecided class is the reason even where the routing is undecided too: other experts are not asked then.
        Refuses radii that rest on anything but votes.
        """
        if not all(isinstance(bounds, Votes | Stated) for bounds in found.evidence):
            raise TypeError("only real votes make certificates, and these radii rest on something else")
        radius, certified = found.radius, found.radius > 0
        class_limits = (found.r_c <= found.r_sigma) | (found.r_c <= 0)
        undecided = np.where(class_limits, Outcome.CLASS_UNDECIDED.value, found.doubt.value)
        rivals = np.where(class_limits, np.nan, found.rival)
        sigmas, place = np.unique(rivals, return_inverse=True)  # few, for many inputs
        names = [ROUTER if np.isnan(s) else f"{found.rivals} {s:g}" for s in sigmas]
        limits = np.array(names, dtype=np.str_)[place]
        return cls(
            prediction=np.where(certified, found.y, ABSTAIN),
            radius=np.where(certified, radius, 0.0),
            sigma_c=found.sigma_c,
            r_sigma=found.r_sigma,
            r_c=found.r_c,
            limited_by=np.where(class_limits, CLASS, limits),
            outcome=np.where(certified, Outcome.CERTIFIED.value, undecided),
            rival=rivals,
            selected=found.y,
        )

    def __len__(self) -> int:
        return len(self.prediction)

    def __getitem__(self, index: int) -> Certificate:  # type: ignore[override]
        return Certificate(
            prediction=int(self.prediction[index]),
            radius=float(self.radius[index]),
            sigma_c=float(self.sigma_c[index]),
            r_sigma=float(self.r_sigma[index]),
            r_c=float(self.r_c[index]),
            limited_by=str(self.limited_by[index]),
            outcome=Outcome(self.outcome[index]),
            rival=None if self.rival is None or np.isnan(self.rival[index]) else float(self.rival[index]),
            seed=self.seed,
        )

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Which inputs nothing is claimed about."""
        return np.asarray(self.prediction == ABSTAIN)

    @classmethod
    def stack(cls, rows: Sequence[Certificate]) -> "Certificates":
        """Put single certificates side by side."""
        held = [f.name for f in fields(Certificate)]
        columns: dict[str, Any] = {name: np.array([getattr(r, name) for r in rows]) for name in held}
        columns["rival"] = np.array([np.nan if r.rival is None else r.rival for r in rows])
        return cls(**columns | {"seed": rows[0].seed if len({r.seed for r in rows}) == 1 else None})

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns in plain types, for JSON or a table."""
        rows = [one.to_dict() for one in self]
        return {f.name: [row[f.name] for row in rows] for f in fields(Certificate)}

    def to_frame(self) -> "DataFrame":
        """A pandas table with a row for each input."""
        return _frame([one.to_dict() for one in self])

    def rows(self, order: NDArray[np.int64]) -> "Certificates":
        """The same certificates in another order, or some of them."""
        held: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        taken: dict[str, Any] = {name: c[order] if isinstance(c, np.ndarray) else c for name, c in held.items()}
        return type(self)(**taken)

    def __str__(self) -> str:
        return listed(self, self.seed)


def _frame(rows: list[dict[str, Any]]) -> "DataFrame":
    try:
        from pandas import DataFrame
    except ImportError as absent:
        raise MissingExtra("tables of certificates need pandas: pip install pandas") from absent
    return DataFrame(rows, columns=[f.name for f in fields(Certificate)])
