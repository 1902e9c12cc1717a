"""Cards: what is known of a set of weights, kept beside them and checked against them."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dualrs.errors import BadCheckpoint


class Architecture(BaseModel):
    """A network by name, with the arguments of its builder (see `architectures`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    arguments: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.network}({', '.join(f'{k}={v}' for k, v in self.arguments.items())})"


class Card(BaseModel):
    """What the weights are, how they were made, what that cost and what came of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    architecture: Architecture
    data: str
    recipe: str
    seed: int | None
    cost: str
    scores: dict[str, float]
    licence: str
    training: str = (
        ""  # the sentence that tells the training that made them from any other; networks of others have none
    )
    classes: tuple[str, ...] = ()  # their names, if the data had any
    sigmas: tuple[float, ...] = ()  # of a router: what its answers mean
    sigma_e: float | None = None  # of a router: the noise that it was trained at
    sha256: str = ""

    @classmethod
    def read(cls, path: Path) -> "Card":
        """The card in a JSON file."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError as error:
            raise BadCheckpoint(f"there is no card {path}; weights of dualrs have one beside them") from error
        except OSError as error:
            raise BadCheckpoint(f"cannot read the card {path}: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(p) for p in first["loc"])
            raise BadCheckpoint(f"{path} is not a card: {place or 'the file'}: {first['msg']}") from error
