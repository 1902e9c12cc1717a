"""From a recipe to objects: open or import what it names and wrap it."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from dualrs.aces import Aces
from dualrs.config import DataSection, Recipe
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.data.sources import open_dataset
from dualrs.errors import BadRecipe
from dualrs.models import zoo
from dualrs.models.architectures import known
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.noisy import fingerprint
from dualrs.models.sources import open_network
from dualrs.models.weights import pour_weights
from dualrs.references import resolve
from dualrs.smoothed import DualSmoothed, Smoothed, SmoothedModel


class Networks:
    """Opens references to networks, each once: heads behind one denoiser, and models with one network, share it.

    Two files with the same network are one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.cwd()
        self._opened: dict[str, nn.Module] = {}
        self._joined: dict[tuple[nn.Module, nn.Module], Denoised] = {}
        self._known: dict[tuple[type, str], nn.Module] = {}  # by what they are, wherever they come from

    def __call__(self, reference: str) -> nn.Module:
        """A network, or a denoiser and the network behind it: ``DENOISER | NETWORK``.

        ``MAKER < FILE.safetensors`` is the network that another reference makes, with the weights of a file.
        """
        parts = [part.strip() for part in reference.split("|")]
        if len(parts) > 2 or not all(parts):
            raise BadRecipe(f"{reference!r} is neither one network nor DENOISER | NETWORK")
        modules = [self._one(part) for part in parts]
        if len(modules) == 1:
            return modules[0]
        for part, module in zip(parts, modules, strict=True):
            if not isinstance(module, nn.Module):
                raise BadRecipe(f"{part!r} leads to a {type(module).__name__}, not to a torch module")
        front, network = modules
        return self._joined.setdefault((front, network), Denoised(front, network))

    def classifier(
        self, reference: str | None, experts: Mapping[float, str] | None
    ) -> nn.Module | dict[float, nn.Module]:
        """The classifier, or the expert of each sigma, whichever is named."""
        return self(str(reference)) if experts is None else {sigma: self(expert) for sigma, expert in experts.items()}

    def _one(self, reference: str) -> nn.Module:
        if reference not in self._opened:
            maker, sign, weights = (part.strip() for part in reference.partition("<"))
            made = self._make(maker)
            self._opened[reference] = pour_weights(self._folder / weights, deepcopy(made)) if sign else made
        return self._opened[reference]

    def _make(self, reference: str) -> nn.Module:
        found = open_network(reference, self._folder)
        if found is None:
            # What Python leads to is checked by the classes that take it, which say what is wrong with it.
            return cast(nn.Module, resolve(reference, self._folder))
        return self._known.setdefault((type(found), fingerprint(found)), found)


def front_of(reference: str) -> tuple[str | None, str]:
    """The denoiser, if there is one, and the network behind it, of ``DENOISER | NETWORK``."""
    front, bar, network = (part.strip() for part in reference.rpartition("|"))
    return (front if bar else None), network


def known_network(reference: str) -> Architecture:
    """What to write on the card of a network that goes on from this one: its architecture, or what makes it."""
    maker, sign, _ = (part.strip() for part in reference.partition("<"))
    scheme, _, name = maker.partition(":")
    if not sign and (maker.endswith(".safetensors") or scheme == "zoo"):
        card = zoo.card(name) if scheme == "zoo" else Card.read(Path(maker).with_suffix(".json"))
        if known(card.architecture):
            return card.architecture
    return Architecture(network=maker)


def fresh_network(network: str, shape: dict[str, Any], seed: int) -> tuple[Architecture, nn.Module | None]:
    """What to train: one of our architectures by name, or a user's own network, made from the seed."""
    if ":" not in network:
        return Architecture(network=network, arguments=shape), None
    if shape:
        raise BadRecipe(f"{network} makes its network itself and takes no shape; got {shape}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = Networks()(network)
    if not isinstance(made, nn.Module):
        raise BadRecipe(f"{network!r} leads to a {type(made).__name__}, not to a torch module")
    return Architecture(network=network), deepcopy(made)


def trained_reference(architecture: Architecture, weights: Path) -> str:
    """How to refer to weights that were trained: by their file, if dualrs can build the network that they belong to."""
    file = str(weights.resolve())
    return file if known(architecture) else f"{architecture.network} < {file}"


def build_model(recipe: Recipe, folder: Path | None = None, networks: Networks | None = None) -> SmoothedModel:
    """The networks that a recipe names, smoothed; references are relative to ``folder``.

    ``networks`` has those that other models opened, to share them.
    """
    spec, engine = recipe.model, recipe.engine.model_dump()
    network = networks or Networks(folder)
    classifier = network.classifier(spec.classifier, spec.experts)
    if spec.core is not None:
        selector = None if spec.selector is None else network(spec.selector)
        return Aces(classifier, network(spec.core), spec.sigma, spec.thresholds, selector=selector, **engine)  # type: ignore[arg-type]
    if spec.router is None:
        assert spec.sigma is not None, "checked by the recipe"
        return Smoothed(classifier, spec.sigma, **engine)  # type: ignore[arg-type]
    return DualSmoothed(network(spec.router), classifier, spec.sigmas, spec.sigma_e, **engine)  # type: ignore[arg-type]


def build_data(data: DataSection, folder: Path | None = None) -> Dataset:
    """The dataset that is named; an array without a name is called after its reference, less the folder."""
    found = open_dataset(data.source, folder, data.resize, data.crop)
    return as_dataset(resolve(data.source, folder), Path(data.source).name) if found is None else found
