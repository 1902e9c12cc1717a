"""A recipe for a router that fits a classifier and some images, for users who have nothing else yet.

Enters: a classifier and data by name. Leaves: a recipe for one round of training, and the inputs it leaves aside.
"""

from collections.abc import Sequence
from typing import Any

from dualrs.config import DataSection, RoundsRecipe
from dualrs.data.dataset import Dataset
from dualrs.data.subsets import parse_inputs
from dualrs.models.reference import Reference

_TAUGHT = 0.75  # of the inputs
_LABELS, _HELD_OUT = 15_000, 500  # inputs at most
_LARGE = 128  # pixels of a side from which a larger network is taken
_STEPS = 400  # of the router's training at least


def fitted_recipe(
    data: DataSection, dataset: Dataset, classifier: str, sigmas: Sequence[float], sigma_e: float, seed: int
) -> RoundsRecipe:
    """One round: labels on three quarters of the inputs, and a router of a size that suits the images."""
    share = min(_TAUGHT, _LABELS / len(dataset.ids))
    taught = max(1, round(share * len(dataset.ids)))
    batch = min(256, max(2, taught // 8))
    front = Reference.parse(classifier).front
    network, arguments = _network(dataset)
    return RoundsRecipe.model_validate(
        {
            "title": f"a router for {classifier}",
            "data": data.model_dump(),
            "test": data.model_dump(),
            "seed": seed,
            "rounds": ["router"],
            "start": {"classifier": classifier, "sigmas": tuple(sigmas), "sigma_e": sigma_e},
            "label": {"inputs": f"{100 * share:.6g}%", "n": 32, "alpha": 0.05},
            "router": {
                "denoiser": None if front is None else str(front),
                "network": network,
                "network_args": arguments,
                "epochs": max(20, -(-_STEPS * batch // taught)),
                "batch_size": batch,
                "rate": 0.003,
                "halve_every": 0,
            },
            "certify": {"n": 1_000, "n0": 100, "alpha": 0.001, "rule": "fusion", "seed": seed},
        }
    )


def held_out(recipe: RoundsRecipe, dataset: Dataset) -> list[int]:
    """Positions of inputs that a fitted recipe does not teach: all of them, or 500 spread over all."""
    taught = set(parse_inputs(recipe.label.inputs, len(dataset.ids)))
    others = [i for i in range(len(dataset.ids)) if i not in taught]
    return others[:: max(1, len(others) // _HELD_OUT)][:_HELD_OUT]


def _network(dataset: Dataset) -> tuple[str, dict[str, Any]]:
    """A network for the channels and sides of the images."""
    channels, height, width = dataset.image(0).shape
    if max(height, width) >= _LARGE:
        return "resnet50", {"channels": channels}
    if channels == 3 and height % 8 == width % 8 == 0:
        return "lean-resnet", {"widths": [24, 48, 96], "blocks": [1, 1, 1]}
    return "resnet20", {"channels": channels}
