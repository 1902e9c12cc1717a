"""What `dualrs verify --redraw` needs to draw votes again: the networks and the data of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrs.cli.options import DataOptions, NetworkOptions
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header


def open_run(
    header: "Header", recipe: Path | None, networks: NetworkOptions, data: DataOptions, device: str | None
) -> "tuple[SmoothedModel, Dataset]":
    """The model and the data of a run: those given by hand over those of a recipe or of a bundle.

    Sigmas are those of the ledger.
    """
    from dualrs.config import DataSection, load_recipe
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.build import build_data

    keep_memory()
    found: dict[str, Any] = {}
    section: DataSection | None = None
    if recipe is not None or networks.model is not None:
        loaded = load_recipe(recipe, {}, bundle=networks.model)
        found, section = loaded.model.model_dump(), loaded.data
    found |= {role: name for role, name in networks.section().items() if name is not None}
    if data.data is not None:
        section = DataSection(**data.section())
    if section is None:
        raise BadRecipe("to draw votes again, name the images: --data, --recipe or --model")
    return _model(header, found, device), build_data(section)


def _model(header: "Header", found: dict[str, Any], device: str | None) -> "SmoothedModel":
    """The kind of model that the run is of, with the networks found."""
    from dualrs import schemes
    from dualrs.pipeline.networks import Networks
    from dualrs.smoothed import Aces, Cascade, DualSmoothed, Pool, RouterAlone, Smoothed

    open_network = Networks()
    engine: dict[str, Any] = {"batch_size": header.batch_size, "device": device, "dtype": header.dtype}

    def network(role: str) -> Any:
        if found.get(role) is None:
            raise BadRecipe(f"to draw votes of this run again, name its {role}: --{role}, --recipe or --model")
        return open_network(found[role])

    scheme = header.scheme
    if isinstance(scheme, schemes.Assigned):
        return RouterAlone(network("router"), scheme.sigmas, scheme.sigma_e, **engine)
    experts = found.get("experts")
    classifier: Any = open_network.classifier(None, experts) if experts else network("classifier")
    if isinstance(scheme, schemes.Labels):
        return Pool(classifier, scheme.sigmas, **engine)
    if isinstance(scheme, schemes.Aces):
        selector = None if found.get("selector") is None else network("selector")
        return Aces(classifier, network("core"), scheme.sigma, scheme.thresholds, selector=selector, **engine)
    if isinstance(scheme, schemes.Cascade):
        return Cascade(classifier, scheme.sigmas, confidences=scheme.confidences, **engine)
    if isinstance(scheme, schemes.Dual):
        router = network("router")
        return DualSmoothed(router, classifier, scheme.sigmas, scheme.sigma_e, confidences=scheme.confidences, **engine)
    return Smoothed(classifier, scheme.sigmas[0], **engine)
