"""How a smoothed model is given to others: a folder, or a repository of the hub, of weights and a card."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Self, cast

from torch import nn

import dualrs
from dualrs.smoothed.model import SmoothedModel

Experts = nn.Module | Mapping[float, nn.Module]
Paths = Sequence[str | PathLike[str]]


class Shared(SmoothedModel):
    """A model whose networks can be saved and pushed; they have to be opened by name, as by `dualrs.load`."""

    parts: Mapping[str, Experts]  # the networks by role, as they were given

    def save_pretrained(self, folder: str | PathLike[str], *, licence: str, ledgers: Paths = ()) -> None:
        """Write the model into a folder: safetensors, a recipe, and a card with the licence that you name.

        ``ledgers`` of this model are read for the card: certified accuracies with n and alpha, and a hash of the file.
        """
        dualrs.save_pretrained(self, folder, licence=licence, ledgers=ledgers)

    def push_to_hub(self, repo: str, *, licence: str, ledgers: Paths = (), private: bool = False) -> str:
        """Upload the same to a repository of the Hugging Face hub, owner/name; returns its address."""
        return dualrs.push_to_hub(self, repo, licence=licence, ledgers=ledgers, private=private)

    @classmethod
    def from_pretrained(
        cls, name: str | PathLike[str], *, revision: str | None = None, device: str | None = None
    ) -> Self:
        """The model of a folder or of a repository of the hub, owner/name. Weights are read, and no code is run."""
        return cast(Self, dualrs.from_pretrained(name, cls, revision=revision, device=device))
