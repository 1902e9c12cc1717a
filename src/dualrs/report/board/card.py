"""The card of an entry: what its votes cannot tell, said by whoever submits it. A file NAME.card.toml beside NAME."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dualrs.errors import BadTable

TEMPLATE = """\
# A card for `dualrs board`: save it beside RUN.ledger, or beside a result table, as RUN.card.toml.
# What the votes tell (rule, n, alpha, accuracy, cost) is read from the ledger and is not said here.
title = ""        # a short name of the model, as it should stand in the table
authors = ""      # whose work it is
paper = ""        # https://... (leave empty what there is not)
code = ""         # https://... where the networks can be had
venue = ""        # where it was published, and when
architecture = "" # of the networks, as "ResNet-110"
training = ""     # how they were trained, as "consistency, sigma 0.5"
extra_data = ""   # data beyond the training set, or "none"
data = ""         # of a result table, which does not say: "CIFAR-10 test, every 20th image"
recipe = ""       # a recipe with the networks and the data, so that `dualrs board --redraw 20` can draw votes again
notes = ""
"""
_LINK = r"^(https://\S+)?$"


class EntryCard(BaseModel):
    """The fields that leaderboards of the field have; empty where nothing is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    authors: str = ""
    paper: str = Field(default="", pattern=_LINK)
    code: str = Field(default="", pattern=_LINK)
    venue: str = ""
    architecture: str = ""
    training: str = ""
    extra_data: str = ""
    data: str = ""
    recipe: str = ""
    notes: str = ""


def read_card(file: Path) -> EntryCard:
    """The card beside a ledger or a table; an empty one if there is none."""
    path = file.with_suffix(".card.toml")
    try:
        return EntryCard(**tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return EntryCard()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as bad:
        raise BadTable(f"the card {path} cannot be read: {bad}; `dualrs board --template` prints an empty one") from bad
    except ValidationError as bad:
        first = bad.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadTable(
            f"the card {path}: {where}: {first['msg']}; `dualrs board --template` prints an empty one"
        ) from bad
