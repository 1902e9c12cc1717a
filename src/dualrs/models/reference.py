"""References to networks: the one grammar by which command lines, recipes and bundles name them.

    MAKER                       a network: zoo:NAME, weights, a hub's model, a Python object (see `sources`)
    MAKER < FILE.safetensors    the network that the maker makes, with the weights of a file
    DENOISER | NETWORK          a network behind a denoiser; each is of one of the two forms above
    DENOISER | METHOD | NETWORK the same, with a method that has randomness of its own (see `between`)

Enters: text. Leaves: its parts as a value, and from them the text again.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from dualrs.errors import BadRecipe
from dualrs.models.between import FORMS, Between, parse_between, spell_between
from dualrs.models.sources import anchored_maker


@dataclass(frozen=True)
class Reference:
    """A network by name: what makes it, the file of its weights if they are not the maker's, the denoiser in front.

    ``between`` the two there may be a method.
    """

    maker: str
    weights: str | None = None
    front: "Reference | None" = None
    between: Between | None = None

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """The reference that a text writes down."""
        parts = [part.strip() for part in text.split("|")]
        between = parse_between(parts[1]) if len(parts) == 3 else None
        if len(parts) > (2 if between is None else 3) or not all(parts):
            raise BadRecipe(
                f"{text!r} is neither one network nor DENOISER | NETWORK (with {FORMS} between, or nothing)"
            )
        front = cls._one(parts[0]) if len(parts) > 1 else None
        return replace(cls._one(parts[-1]), front=front, between=between)

    @classmethod
    def _one(cls, part: str) -> "Reference":
        maker, sign, weights = (half.strip() for half in part.partition("<"))
        return cls(maker, weights if sign else None)

    def __str__(self) -> str:
        network = self.maker if self.weights is None else f"{self.maker} < {self.weights}"
        methods = () if self.between is None else (spell_between(self.between),)
        return network if self.front is None else " | ".join((str(self.front), *methods, network))

    @property
    def bare(self) -> "Reference":
        """The network without the denoiser."""
        return replace(self, front=None, between=None)

    def behind(self, denoiser: "Reference | str | None") -> "Reference":
        """The network behind a denoiser, if one is given; one that has its own is refused."""
        return self if denoiser is None else Reference.parse(f"{denoiser} | {self}")

    def anchored(self, folder: Path) -> "Reference":
        """The same reference with paths made absolute, so that it means the same from any folder."""
        return Reference(
            anchored_maker(self.maker, folder),
            None if self.weights is None else str(folder / self.weights),
            None if self.front is None else self.front.anchored(folder),
            self.between,
        )


def anchored_network(text: str, folder: Path) -> str:
    """The same for a reference as text."""
    return str(Reference.parse(text).anchored(folder))
