"""Models on a hub: a bundle of weights with a card, pushed and pulled. What is pulled is data: no code of it is run.

Enters: a smoothed model, or the folder of a bundle. Leaves: a folder or a repository of the hub, and the model again.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from os.path import normpath
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import nn

from dualrs.config import BUNDLE, ModelSection, Recipe
from dualrs.errors import BadCheckpoint, BadModel, Unreachable, first_line
from dualrs.extras import need
from dualrs.files import write_whole
from dualrs.hub.card import written
from dualrs.models.named import name_of
from dualrs.models.reference import Reference
from dualrs.pipeline.bundle import bundled_recipe, load_bundle, write_bundle
from dualrs.smoothed import Cascade, DualSmoothed, SmoothedModel

FILES = (BUNDLE, "*.safetensors", "*.json", "README.md")  # nothing else is fetched
_WEIGHTS = ".safetensors"
_PURPOSE = "a model on the hub"
Paths = Sequence[str | PathLike[str]]


def save_pretrained(
    source: SmoothedModel | Path,
    folder: str | PathLike[str],
    *,
    licence: str,
    ledgers: Paths = (),
    name: str = "",
) -> None:
    """Write a model, or the model of a bundle, into a folder: its weights, a recipe, and a card with its results.

    ``ledgers`` are runs of this very model, whose certified accuracies go into the card; others are refused.
    """
    recipe = bundled_recipe(source) if isinstance(source, Path) else _recipe(source)
    for reference in _references(recipe.model):
        _demand_weights(reference, "cannot go into it; train or save it with dualrs first")
    model, place = load_bundle(source) if isinstance(source, Path) else source, Path(folder)
    card = written(name or place.name, model, licence, [Path(ledger) for ledger in ledgers])
    # Without what is at home with its maker alone: the data, and where the networks run.
    kept = {field: getattr(recipe, field) for field in Recipe.model_fields if field != "data"}
    kept["engine"] = recipe.engine.model_copy(update={"device": None})
    write_bundle(place, Recipe.model_construct(**kept))
    write_whole(place / "README.md", card.encode())


def push_to_hub(
    source: SmoothedModel | Path, repo: str, *, licence: str, ledgers: Paths = (), private: bool = False
) -> str:
    """Save a model and upload it to a repository of the hub, made if there is none; returns its address."""
    hub = need("huggingface_hub", "hub", _PURPOSE)
    with TemporaryDirectory() as place:
        folder = Path(place)
        save_pretrained(source, folder, licence=licence, ledgers=ledgers, name=repo)
        try:
            address = hub.HfApi().create_repo(repo, private=private, exist_ok=True)
            hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="Push a smoothed model with dualrs")
        except Exception as error:  # of the connection, of the name, or because nobody is logged in
            raise Unreachable(
                f"cannot push {repo} to the hub ({first_line(error)}); check the name, the connection and the login "
                "(`hf auth login`)"
            ) from error
    return str(address)


def from_pretrained(
    name: str | PathLike[str],
    kind: type[SmoothedModel] = SmoothedModel,
    *,
    revision: str | None = None,
    device: str | None = None,
) -> SmoothedModel:
    """The model of a folder, or of a repository of the hub: of this kind, and of weights alone."""
    folder = Path(name) if Path(name).is_dir() else _fetched(str(name), revision)
    for reference in _references(bundled_recipe(folder).model):
        _demand_weights(reference, f"is not read by from_pretrained; `load_bundle` reads {folder}, if you trust it")
        # By name, since the cache of the hub links to where the files lie.
        if reference.maker.endswith(_WEIGHTS) and Path(normpath(reference.maker)).parent != folder.resolve():
            raise BadModel(f"{name} names weights outside of it, {reference.maker}; no file of yours is read for it")
    model = load_bundle(folder, device=device)
    if not isinstance(model, kind):
        found = type(model).__name__
        raise BadModel(f"{name} is a {found}, not a {kind.__name__}; call {found}.from_pretrained")
    return model


def _fetched(name: str, revision: str | None) -> Path:
    hub = need("huggingface_hub", "hub", _PURPOSE)
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # of the connection, or what the hub answered
        raise Unreachable(
            f"cannot get {name} from the hub ({first_line(error)}); check the name and the connection, or give a folder"
        ) from error
    if not (folder / BUNDLE).is_file():
        raise BadCheckpoint(f"{name} is no model of dualrs: it has no {BUNDLE}")
    return folder


def _recipe(model: SmoothedModel) -> Recipe:
    """The recipe of a model whose networks were opened by name."""
    if not isinstance(model, DualSmoothed | Cascade):
        raise BadModel(f"a {type(model).__name__} is not pushed; DualSmoothed and Cascade are")
    parts: dict[str, object] = {"sigmas": model.sigmas, "confidences": model.kind.settings["confidences"]}
    for role, network in model.parts.items():
        if isinstance(network, Mapping):
            parts["experts"] = {sigma: _named(f"expert at {sigma:g}", expert) for sigma, expert in network.items()}
        else:
            parts[role] = _named(role, network)
    if isinstance(model, DualSmoothed):
        parts["sigma_e"] = model.sigma_e
    return Recipe.model_construct(model=ModelSection.model_validate(parts))


def _named(role: str, network: nn.Module) -> str:
    reference = name_of(network)
    if reference is None:
        raise BadModel(
            f"the {role} is a {type(network).__name__} made in Python, which weights alone cannot make again; open it "
            "with dualrs.load or load_bundle, from files that `dualrs train` or save_weights wrote"
        )
    return reference


def _references(model: ModelSection) -> Iterator[Reference]:
    """The networks of a model, denoisers apart."""
    named = [model.router, model.classifier, model.core, model.selector, *(model.experts or {}).values()]
    for reference in map(Reference.parse, filter(None, named)):
        yield from filter(None, (reference.front, reference.bare))


def _demand_weights(reference: Reference, advice: str) -> None:
    """Refuse a network that needs more than weights which dualrs builds the network of."""
    bundled = reference.maker.startswith("zoo:")
    if reference.weights is not None or not (reference.maker.endswith(_WEIGHTS) or bundled):
        raise BadModel(f"a model on a hub is made of weights that dualrs saved, and {reference} {advice}")
