"""What `dualrs verify --redraw` needs to draw votes again: the networks and the data of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrs.cli.options import expert_references, from_here
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header


@dataclass(frozen=True)
class Given:
    """Networks and data as given by hand, over those of a recipe or of a bundle; sigmas are those of the ledger."""

    recipe: Path | None
    bundle: Path | None
    networks: dict[str, str | None]  # by role
    experts: list[str] | None
    data: str | None
    resize: int | None
    crop: int | None
    device: str | None

    def open(self, header: "Header") -> "tuple[SmoothedModel, Dataset]":
        """The model and the data of a run."""
        from dualrs.build import build_data
        from dualrs.config import DataSection, load_recipe
        from dualrs.models.hardware import keep_memory

        keep_memory()
        here = Path.cwd()
        found: dict[str, Any] = {}
        data: DataSection | None = None
        if self.recipe is not None or self.bundle is not None:
            loaded = load_recipe(self.recipe, {}, bundle=self.bundle)
            found, data = loaded.model.model_dump(), loaded.data
        by_hand = {role: from_here(reference, here) for role, reference in self.networks.items()}
        by_hand |= {"experts": expert_references(self.experts, here)}  # type: ignore[dict-item]
        found |= {role: given for role, given in by_hand.items() if given is not None}
        if self.data is not None:
            data = DataSection(source=str(from_here(self.data, here)), resize=self.resize, crop=self.crop)
        if data is None:
            raise BadRecipe("to draw votes again, name the images: --data, --recipe or --model")
        return _model(header, found, self.device), build_data(data)


def _model(header: "Header", found: dict[str, Any], device: str | None) -> "SmoothedModel":
    """The kind of model that the run is of, with the networks found."""
    from dualrs.aces import Aces
    from dualrs.build import Networks
    from dualrs.smoothed import DualSmoothed, Pool, RouterAlone, Smoothed
    from dualrs.storage.header import ASSIGNED, LABELS

    open_network = Networks()
    engine: dict[str, Any] = {"batch_size": header.batch_size, "device": device, "dtype": header.dtype}

    def network(role: str) -> Any:
        if found.get(role) is None:
            raise BadRecipe(f"to draw votes of this run again, name its {role}: --{role}, --recipe or --model")
        return open_network(found[role])

    if header.rule == ASSIGNED:
        return RouterAlone(network("router"), header.sigmas, header.sigma_e or 0.0, **engine)
    experts = found.get("experts")
    classifier: Any = (
        {float(sigma): open_network(reference) for sigma, reference in experts.items()}
        if experts
        else network("classifier")
    )
    if header.rule == LABELS:
        return Pool(classifier, header.sigmas, **engine)
    if header.thresholds:
        selector = None if found.get("selector") is None else network("selector")
        return Aces(classifier, network("core"), header.sigmas[0], header.thresholds, selector=selector, **engine)
    if header.sigma_e is None:
        return Smoothed(classifier, header.sigmas[0], **engine)
    return DualSmoothed(network("router"), classifier, header.sigmas, header.sigma_e, **engine)
