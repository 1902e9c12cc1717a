"""Tuned: on which inputs the numbers in the name of a rule were chosen, so that nobody takes results there for more.

Enters: the record that `dualrs tune` wrote into a recipe, and a run. Leaves: how many inputs of the run are among those
of the record, and what has to be said about them.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from dualrs.errors import BadSetting

_BYTES = 6  # of a hash; ten thousand inputs beside ten thousand others meet by chance in one comparison of 3 million
_LETTERS = 8  # as text


@dataclass(frozen=True)
class Tuned:
    """The rule that was chosen, and on which inputs: of which dataset, under which seed, and a hash of each id."""

    rule: str
    dataset: str
    dataset_fingerprint: str
    seed: str
    inputs: str

    def __post_init__(self) -> None:
        if len(self.inputs) % _LETTERS:
            raise BadSetting(f"the hashes of inputs that a rule was tuned on have {_LETTERS} letters each")

    @classmethod
    def on(cls, rule: str, dataset: str, dataset_fingerprint: str, seed: str, ids: Iterable[str]) -> "Tuned":
        """The record of a choice on these inputs."""
        return cls(rule, dataset, dataset_fingerprint, seed, "".join(map(_hashed, ids)))

    @property
    def fields(self) -> dict[str, str]:
        """As they stand in a header."""
        return asdict(self)

    def shared(self, dataset: str, dataset_fingerprint: str, ids: Iterable[str]) -> int:
        """How many of these inputs the rule was tuned on.

        The same id means the same input in the same dataset, and in two selections of one, as cifar10/test and
        cifar10/subset are.
        """
        family, slash, _ = dataset.partition("/")
        related = bool(slash) and self.dataset.startswith(f"{family}/")
        if dataset_fingerprint != self.dataset_fingerprint and not related:
            return 0
        hashes = {self.inputs[i : i + _LETTERS] for i in range(0, len(self.inputs), _LETTERS)}
        return sum(_hashed(name) in hashes for name in ids)


@dataclass(frozen=True)
class Overlap:
    """That a rule was tuned on some of the inputs that it is shown on; ``by_these_votes`` if under the same noise."""

    tuned: int
    inputs: int
    by_these_votes: bool

    @property
    def note(self) -> str:
        """What accuracies under the rule are worth."""
        return f"tuned on {self.tuned} of these {self.inputs} inputs: no estimate of accuracy on others"

    def covered(self, guarantee: str) -> str:
        """The words of a guarantee, which is one over the noise: a rule that was chosen by the very votes has none."""
        if self.by_these_votes:
            return (
                f"{guarantee}; but its numbers were chosen by these votes on {self.tuned} of the inputs, which it does "
                "not cover"
            )
        return f"{guarantee}; its numbers were chosen on {self.tuned} of these inputs, by votes under other noise"


def _hashed(name: str) -> str:
    return urlsafe_b64encode(hashlib.blake2b(name.encode(), digest_size=_BYTES).digest()).decode()
