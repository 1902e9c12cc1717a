"""From references to networks: opened, made fresh for training, or gone on from; and back, once they are trained.

Enters: references. Leaves: networks, each opened once.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from dualrs.errors import BadRecipe
from dualrs.models import zoo
from dualrs.models.architectures import known
from dualrs.models.between import Between, spell_between
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.named import remember
from dualrs.models.noisy import fingerprint, takes_randomness
from dualrs.models.reference import Reference
from dualrs.models.sources import nearest_network, open_network
from dualrs.models.weights import pour_weights
from dualrs.references import resolve
from dualrs.training.trainee import Trainee


class Networks:
    """Opens references to networks, each once: heads behind one denoiser, and models with one network, share it.

    Two files with the same network are one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.cwd()
        self._opened: dict[Reference, nn.Module] = {}
        self._fronts: dict[tuple[nn.Module, Between], nn.Module] = {}
        self._joined: dict[tuple[nn.Module, Between | None, nn.Module], nn.Module] = {}
        self._known: dict[tuple[type, str], nn.Module] = {}  # by what they are, wherever they come from

    def __call__(self, reference: Reference | str) -> nn.Module:
        """The network that a reference names, behind its denoiser if it has one."""
        if isinstance(reference, str):
            reference = Reference.parse(reference)
        if reference.front is None:
            found = self._open(reference)
        else:
            front, network = self._open(reference.front), self._open(reference.bare)
            _demand_module(reference.front, front)
            _demand_module(reference.bare, network)
            found = self._join(front, reference.between, network)
        if isinstance(found, nn.Module):
            remember(found, str(reference.anchored(self._folder)))
        return found

    def _join(self, denoiser: nn.Module, between: Between | None, network: nn.Module) -> nn.Module:
        """A network behind a denoiser, by a method if there is one; what was joined before is joined once."""
        if (denoiser, between, network) not in self._joined:
            if between is None:
                joined: nn.Module = Denoised(denoiser, network)
            else:
                if (denoiser, between) not in self._fronts:
                    self._fronts[denoiser, between] = between.front(denoiser)
                joined = between.join(self._fronts[denoiser, between], network)
            self._joined[denoiser, between, network] = joined
        return self._joined[denoiser, between, network]

    def classifier(self, single: str | None, experts: Mapping[Any, str] | None) -> nn.Module | dict[float, nn.Module]:
        """The classifier, or the expert of each sigma, whichever is named; a command line has sigmas as text."""
        return self(str(single)) if experts is None else {float(sigma): self(experts[sigma]) for sigma in experts}

    def fresh(self, reference: Reference, arguments: dict[str, Any], seed: int) -> Trainee:
        """A network to train: one of our architectures by name, or a user's own network, made from the seed."""
        denoiser = self._front(reference)
        if ":" not in reference.maker:
            return Trainee(Architecture(network=reference.maker, arguments=arguments), denoiser=denoiser)
        if arguments:
            raise BadRecipe(f"{reference.bare} makes its network itself and takes no arguments; got {arguments}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = Networks(self._folder)(reference.bare)  # not one that was opened before, from another seed
        _demand_module(reference.bare, made)
        _demand_still(reference.bare, made)
        return Trainee(Architecture(network=reference.maker), deepcopy(made), denoiser)

    def going_on(self, reference: Reference) -> Trainee:
        """A network to train further."""
        start = self(reference.bare)
        _demand_still(reference.bare, start)
        return Trainee(architecture_of(reference), start, self._front(reference))

    def teacher(self, reference: str) -> nn.Module:
        """A network whose votes another one learns."""
        found = self(reference)
        _demand_module(Reference.parse(reference), found)
        _demand_still(Reference.parse(reference), found)
        return found

    def _front(self, reference: Reference) -> nn.Module | None:
        if reference.between is not None:
            raise BadRecipe(
                f"a network is trained behind a denoiser alone, as in '{reference.front} | {reference.bare}'; put "
                f"{spell_between(reference.between)} between them when you certify"
            )
        if reference.front is None:
            return None
        front = self(reference.front)
        _demand_still(reference.front, front)
        return front

    def _open(self, reference: Reference) -> nn.Module:
        if reference not in self._opened:
            made = self._make(reference.maker)
            if reference.weights is not None:
                _demand_module(reference, made)
                made = pour_weights(self._folder / reference.weights, deepcopy(made))
            self._opened[reference] = made
        return self._opened[reference]

    def _make(self, maker: str) -> nn.Module:
        found = open_network(maker, self._folder)
        if found is None:
            # What Python leads to is checked by the classes that take it, which say what is wrong with it.
            try:
                return cast(nn.Module, resolve(maker, self._folder))
            except BadRecipe as error:
                raise BadRecipe(f"{error}{nearest_network(maker, self._folder)}") from error
        return self._known.setdefault((type(found), fingerprint(found)), found)


def load(reference: str) -> nn.Module:
    """A network by any name that the command line knows: zoo:NAME, a file of weights, a hub's model, net.py:attribute.

    ``DENOISER | NETWORK`` puts a denoiser in front; ``diffsmooth`` or ``densepure`` may stand between the two. Paths
    start at the working folder.
    """
    return Networks()(reference)


def architecture_of(reference: Reference) -> Architecture:
    """What to write on the card of a network that goes on from this one: its architecture, or what makes it."""
    scheme, _, name = reference.maker.partition(":")
    if reference.weights is None and (scheme == "zoo" or reference.maker.endswith(".safetensors")):
        card = zoo.card(name) if scheme == "zoo" else Card.read(Path(reference.maker).with_suffix(".json"))
        if known(card.architecture):
            return card.architecture
    return Architecture(network=reference.maker)


def trained_reference(architecture: Architecture, weights: Path) -> Reference:
    """How to refer to weights that were trained: by their file, if dualrs can build the network that they belong to."""
    file = str(weights.resolve())
    return Reference(file) if known(architecture) else Reference(architecture.network, file)


def _demand_still(reference: Reference, network: object) -> None:
    if isinstance(network, nn.Module) and takes_randomness(network):
        raise BadRecipe(f"{str(reference)!r} draws numbers of its own, which training does not give it; only votes do")


def _demand_module(reference: Reference, found: object) -> None:
    if not isinstance(found, nn.Module):
        raise BadRecipe(f"{str(reference)!r} leads to a {type(found).__name__}, not to a torch module")
