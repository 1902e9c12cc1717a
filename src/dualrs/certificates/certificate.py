"""What a certificate says: the class, the radius within which it stands, and why the radius is what it is.

`Certificates` holds one entry per input as arrays, which is what rules return; `Certificate` is one of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrs.theory.bounds import Floats
from dualrs.theory.radius import round_down

if TYPE_CHECKING:
    from dualrs.certificates.predict import Prediction

ABSTAIN = -1  # the prediction of an input about which nothing is claimed


class Outcome(StrEnum):
    """How certification, or prediction, ended."""

    CERTIFIED = "certified"
    PREDICTED = "predicted"
    ROUTER_UNDECIDED = "router undecided"
    CLASS_UNDECIDED = "class undecided"


CLASS, ROUTER = "class", "router"


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


def rival(sigma: float) -> str:
    """Name of a limit: the router might answer this sigma, whose expert might answer another class."""
    return f"rival {sigma:g}"


@dataclass(frozen=True)
class Certificate:
    """One input: with probability >= 1 - alpha over the noise, no image closer than ``radius`` is classified otherwise.

    ``prediction`` is `ABSTAIN` and ``radius`` 0 where ``outcome`` is neither certified nor predicted; predicted is a
    claim about the input alone, with ``radius`` 0 (rule `aces`). ``r_sigma`` is the radius
    of the routing, ``r_c`` that of the class under the chosen sigma; the smaller one is ``radius``. Either may
    be zero or negative: its bound did not reach what it had to. ``limited_by`` names what holds the radius
    down: "class", "router", or "rival s": the router might answer s, where another class might win. The same call with
    ``seed`` gives the same certificate.
    """

    prediction: int
    radius: float
    sigma_c: float
    r_sigma: float
    r_c: float
    limited_by: str
    outcome: Outcome
    seed: int | None = field(default=None, compare=False)  # of the noise; None in what a rule makes of bare votes

    @property
    def abstained(self) -> bool:
        """Whether nothing is claimed."""
        return self.prediction == ABSTAIN

    @property
    def said(self) -> str:
        """What is claimed, in words."""
        if self.abstained:
            return f"abstains: {self.outcome} at sigma {self.sigma_c:g}"
        if self.outcome is Outcome.PREDICTED:
            return f"class {self.prediction} without a radius (by the {self.limited_by})"
        return (
            f"class {self.prediction} within L2 radius {round_down(self.radius)} "
            f"(sigma {self.sigma_c:g}, limited by {self.limited_by})"
        )

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
    seed: int | None = None  # one for all

    @classmethod
    def conclude(
        cls,
        y: NDArray[np.int64],
        sigma_c: Floats,
        r_c: Floats,
        r_sigma: Floats,
        router_limit: NDArray[np.str_],
    ) -> "Certificates":
        """The smaller radius decides; an input without a positive one abstains, and its limit gives the reason.

        An undecided class is the reason even where the routing is undecided too: other experts are not asked then.
        """
        radius = np.minimum(r_c, r_sigma)
        class_limits = (r_c <= r_sigma) | (r_c <= 0)
        certified = radius > 0
        undecided = np.where(class_limits, Outcome.CLASS_UNDECIDED.value, Outcome.ROUTER_UNDECIDED.value)
        return cls(
            prediction=np.where(certified, y, ABSTAIN),
            radius=np.where(certified, radius, 0.0),
            sigma_c=sigma_c,
            r_sigma=r_sigma,
            r_c=r_c,
            limited_by=np.where(class_limits, CLASS, router_limit),
            outcome=np.where(certified, Outcome.CERTIFIED.value, undecided),
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
            seed=self.seed,
        )

    def __iter__(self) -> Iterator[Certificate]:
        return (self[i] for i in range(len(self)))

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Which inputs nothing is claimed about."""
        return np.asarray(self.prediction == ABSTAIN)

    @classmethod
    def stack(cls, rows: Sequence[Certificate]) -> "Certificates":
        """Put single certificates side by side."""
        columns: dict[str, Any] = {f.name: np.array([getattr(r, f.name) for r in rows]) for f in fields(cls)}
        return cls(**columns | {"seed": rows[0].seed if len({r.seed for r in rows}) == 1 else None})

    def __str__(self) -> str:
        return listed(self, self.seed)
