"""The sets of options that commands share, and how their values are read. `sets` says how a command takes them."""

import re
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dualrs.cli.sets import Only
from dualrs.errors import BadRecipe, BadSetting

if TYPE_CHECKING:
    from dualrs.config import DataSection
    from dualrs.data.dataset import Dataset

NETWORKS, DATA, VOTES, ENGINE, WORKERS = "Networks", "Data", "Votes and rule", "Engine", "Workers"
_network, _data, _votes, _engine, _workers = (
    partial(Option, rich_help_panel=panel) for panel in (NETWORKS, DATA, VOTES, ENGINE, WORKERS)
)
DEVICE = "cpu, cuda or mps; by default a GPU if there is one. A run that goes on stays where it was."
_REFERENCE = (
    "zoo:NAME, a file of weights or a hub's model (see `dualrs models`), or module:attribute or file.py:attribute, an "
    "object or a function that makes it; 'DENOISER | NETWORK' puts a denoiser in front, and 'diffsmooth' or "
    "'densepure' may stand between the two"
)


def recipe_file(text: str) -> Path:
    """A recipe as the command line takes it: a file, or the name of one that comes with dualrs."""
    from dualrs.config import recipe_path

    return recipe_path(text)


RecipeFile = Annotated[
    Path | None,
    Argument(
        parser=recipe_file,
        metavar="[RECIPE]",
        help="A recipe with the settings below: a file (TOML), or the name of one that comes with dualrs, as "
        "quickstart. Options given by hand win over it.",
    ),
]


@dataclass(frozen=True)
class NetworkOptions:
    """The networks of a run and the sigmas that they work at."""

    model: Annotated[
        Path | None, _network("--model", help="A bundle, the folder that `dualrs rounds` made: all networks.")
    ] = None
    router: Annotated[str | None, _network(help=f"The router: {_REFERENCE}.")] = None
    classifier: Annotated[str | None, _network(help="The classifier, named likewise.")] = None
    expert: Annotated[
        list[str] | None, _network("--expert", help="An expert for one sigma, as 0.25=module:attribute; repeat.")
    ] = None
    sigmas: Annotated[
        str | None,
        _network(help="Candidate sigmas, as 0.25,0.5,1.0. Several without a router are certified as a cascade."),
    ] = None
    sigma_e: Annotated[
        float | None,
        _network(help="Sigma of the router; 0 for one that sees no noise and states a radius of its own (ACE)."),
    ] = None
    sigma: Annotated[float | None, _network(help="The one sigma of a classifier without router.")] = None
    core: Annotated[
        str | None,
        _network(
            help="With --sigma, ACES: a network that answers, without noise and so without a radius, where the entropy "
            "of the classifier is above a threshold. With --sigmas: one that sees no noise and states a radius of its "
            "own (zoo:cifar10-lipschitz), as the router's first candidate or as the last stage of a cascade."
        ),
    ] = None
    thresholds: Annotated[
        str | None,
        _network(
            help="With --core: thresholds of the entropy in nats, as 0.5,1.0. --rule aces-1 says which is the run's "
            "own; by default the first."
        ),
    ] = None
    selector: Annotated[
        str | None, _network(help="With --core: the network whose entropy counts; by default the classifier.")
    ] = None
    confidences: Annotated[
        str | None,
        _network(
            help="With --sigmas: softmax probabilities at which votes tell whether the classifier was sure, so that "
            "--rule cascade-0.4 can let the others pass; 0.3,0.4,0.5,0.6 for a cascade, and none with a router."
        ),
    ] = None

    neighbours: Annotated[
        str | None,
        _network(
            help="With --sigma: images, named as --data are, usually those of training. Each input has a sigma of its "
            "own, larger the farther its nearest among them are (Sukenik et al.)."
        ),
    ] = None

    ascent: Annotated[
        bool,
        _network(
            "--ascent",
            help="With --sigma: from there on, take the sigma that promises each input the largest radius (Alfarra et "
            "al.). Such radii have no guarantee; see `dualrs memory`.",
        ),
    ] = False

    def section(self) -> dict[str, Any]:
        """The section [model] of a recipe. Paths in a recipe start at the recipe, those given by hand here."""
        from dualrs.data.sources import anchored_dataset
        from dualrs.models.reference import anchored_network

        here = Path.cwd()
        by_role = {role: getattr(self, role) for role in ("router", "classifier", "core", "selector")}
        split = [pair.partition("=") for pair in self.expert or ()]
        if any(not sign for _, sign, _ in split):
            raise BadRecipe("an expert is given as SIGMA=module:attribute, for example --expert 0.25=net.py:small")
        return {
            **{role: None if name is None else anchored_network(name, here) for role, name in by_role.items()},
            "experts": {sigma: anchored_network(name, here) for sigma, _, name in split} or None,
            "sigmas": numbers(self.sigmas, "--sigmas"),
            "sigma_e": self.sigma_e,
            "sigma": self.sigma,
            "thresholds": numbers(self.thresholds, "--thresholds"),
            "confidences": numbers(self.confidences, "--confidences"),
            "ascent": self.ascent or None,
            "neighbours": None if self.neighbours is None else anchored_dataset(self.neighbours, here),
        }


@dataclass(frozen=True)
class DataOptions:
    """Images, and which of them."""

    data: Annotated[
        str | None,
        _data(
            help="cifar10:test, cifar10:subset, folder:PATH, hub:NAME:SPLIT, or module:attribute: a dataset, an array "
            "of images, or (images, labels)."
        ),
    ] = None
    resize: Annotated[int | None, _data(help="Resize images of folders and hubs: pixels of the shorter side.")] = None
    crop: Annotated[int | None, _data(help="Then take the central square of this side.")] = None
    inputs: Annotated[
        str, _data(help="Which inputs: START:STOP:STEP of their positions (:: is all), or a random share, as 20%.")
    ] = "::"

    def section(self) -> dict[str, Any]:
        """The section [data] of a recipe; a path starts here."""
        from dualrs.data.sources import anchored_dataset

        source = None if self.data is None else anchored_dataset(self.data, Path.cwd())
        return {"source": source, "resize": self.resize, "crop": self.crop}

    def open(self) -> "Dataset":
        """The dataset that is named."""
        from dualrs.config import DataSection
        from dualrs.pipeline.build import build_data

        return build_data(DataSection(**self.section()))

    def given(self) -> "DataSection | None":
        """The data that are named; None if none are."""
        if self.data is None:
            if self.resize is not None or self.crop is not None:
                raise BadSetting("--resize and --crop go with --data; say where the images are")
            return None
        from dualrs.config import DataSection

        return DataSection(**self.section())


Images = Annotated[DataOptions, Only("data", "resize", "crop")]


def _seed(text: str) -> int:
    """A seed as dualrs writes it: decimal, or hexadecimal after 0x."""
    try:
        return int(text, 0)
    except ValueError as error:
        raise BadRecipe(f"--seed takes a whole number, decimal or hexadecimal (0x...), got {text!r}") from error


@dataclass(frozen=True)
class VoteOptions:
    """How many votes are drawn, and what is concluded from them."""

    n: Annotated[int | None, _votes(help="Estimation votes per stage; 10,000 by default.")] = None
    n0: Annotated[int | None, _votes(help="Selection votes per stage; 100 by default.")] = None
    alpha: Annotated[
        float | None, _votes(help="Probability that the answer for an input may be wrong; 0.001 by default.")
    ] = None
    rule: Annotated[
        str | None,
        _votes(
            help="cohen (one sigma); cascade, cascade-0.4 (votes below this confidence pass at the noisiest stage), "
            "multiscale (several sigmas, no router); paper, paper-1:4 (another split), nosplit, fusion or fusion-pair "
            "(with a router); ace (with --sigma-e 0); aces-THRESHOLD (a core network, one sigma); sukenik (neighbours) "
            "or as-if-constant (an ascent). By default the first named, fusion with a router."
        ),
    ] = None
    adaptive: Annotated[
        bool,
        _votes(
            "--adaptive",
            help="Take n votes at most, and stop an input where more would not help: a fraction of the votes, the same "
            "guarantee.",
        ),
    ] = False
    radii: Annotated[
        str | None,
        _votes(help="With --adaptive: the radii to certify at, as 0,0.25,0.5; those of the tables by default."),
    ] = None
    tolerance: Annotated[
        float | None,
        _votes(help="With --adaptive: stop when the radius is within this distance of the best reachable one."),
    ] = None
    seed: Annotated[
        int | None,
        _votes(
            parser=_seed,
            metavar="INTEGER",
            help="Seed of the noise. Without one a secret seed is drawn, and recorded; a run that goes on keeps its "
            "own. Whoever knows the seed beforehand must not choose the images.",
        ),
    ] = None
    reuse: Annotated[
        Path | None,
        _votes(
            help="An earlier ledger on these inputs: what networks of this run voted there is copied, not drawn again. "
            "If it has fewer votes than n, this run goes on from them."
        ),
    ] = None

    def section(self) -> dict[str, Any]:
        """The section [certify] of a recipe."""
        plain = {name: getattr(self, name) for name in ("n", "n0", "alpha", "rule", "tolerance", "seed")}
        return {**plain, "budget": "adaptive" if self.adaptive else None, "radii": numbers(self.radii, "--radii")}


@dataclass(frozen=True)
class EngineOptions:
    """How the networks run."""

    batch_size: Annotated[
        int | None,
        _engine(
            help="Shape of every batch, part of the run; 256 by default, on a CPU less where the networks' layers are "
            "wide, and less if memory asks for it."
        ),
    ] = None
    device: Annotated[str | None, _engine(help=DEVICE)] = None
    dtype: Annotated[str | None, _engine(help="float32 (default), bfloat16 or float16.")] = None
    compile: Annotated[
        bool,
        _engine(
            "--compile",
            help="Have torch compile the networks: half a minute or so at the start, then faster batches. Needs a C++ "
            "compiler on the CPU; without one the networks run as they are.",
        ),
    ] = False

    threads: Annotated[
        int | None,
        _engine(help="Threads of the processor; by default all, and for networks that are very small one.", min=1),
    ] = None

    def section(self) -> dict[str, Any]:
        """The section [engine] of a recipe."""
        given = {name: getattr(self, name) for name in ("batch_size", "device", "dtype", "threads")}
        return {**given, "compile": self.compile or None}


@dataclass(frozen=True)
class WorkerOptions:
    """Who counts the votes, if not this process."""

    workers: Annotated[
        int | None,
        _workers(
            help="Count the votes in so many processes, each with a GPU or else with a share of the cores; the votes "
            "are the same. Needs Ray: pip install 'dualrs[scale]'."
        ),
    ] = None
    ray: Annotated[
        str | None,
        _workers(
            help="Count them on a Ray cluster: HOST:PORT, or auto on one of its machines. A worker for each GPU, or "
            "else for each core, unless --workers says how many."
        ),
    ] = None


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(t) for t in text.split(",")]
    except ValueError as error:
        raise BadRecipe(f"{option} takes numbers separated by commas, such as 0.25,0.5,1.0; got {text!r}") from error


def positions(text: str | None) -> range | None:
    """Positions of inputs in a dataset whose length is not known: START:STOP:STEP, counted from the first."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d*):(\d*)(?::([1-9]\d*)?)?", text)
    if found is None:
        raise BadSetting(f"--inputs are START:STOP:STEP of positions, such as 0:500 or ::20; got {text!r}")
    start, stop, step = found.groups()
    return range(int(start or 0), int(stop or sys.maxsize), int(step or 1))


def method_names(text: str) -> list[str]:
    """Names separated by commas; a number that follows one belongs to the name before it, as in cascade-0.4,0.3."""
    return [name.strip() for name in re.split(r",(?!\s*[0-9.@]+\s*(?:,|$))", text)]


def this_command() -> str:
    """The command as it was typed, for the records."""
    return shlex.join(["dualrs", *sys.argv[1:]])
