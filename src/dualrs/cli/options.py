"""Options that several commands share, and how their values are read."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from dualrs.errors import BadRecipe

NETWORKS, DATA, VOTES, ENGINE, WORKERS = "Networks", "Data", "Votes and rule", "Engine", "Workers"
_REFERENCE = (
    "zoo:NAME, a file of weights or a hub's model (see `dualrs models`), or module:attribute or file.py:attribute, an "
    "object or a function that makes it; 'DENOISER | NETWORK' puts a denoiser in front"
)

RecipeFile = Annotated[
    Path | None, Argument(help="A recipe (TOML) with the settings below; options given by hand win over it.")
]
Bundle = Annotated[
    Path | None,
    Option("--model", help="A bundle, the folder that `dualrs rounds` made: all networks.", rich_help_panel=NETWORKS),
]
Router = Annotated[str | None, Option(help=f"The router: {_REFERENCE}.", rich_help_panel=NETWORKS)]
Classifier = Annotated[str | None, Option(help="The classifier, named likewise.", rich_help_panel=NETWORKS)]
Experts = Annotated[
    list[str] | None,
    Option("--expert", help="An expert for one sigma, as 0.25=module:attribute; repeat.", rich_help_panel=NETWORKS),
]
Sigmas = Annotated[str | None, Option(help="Candidate sigmas, as 0.25,0.5,1.0.", rich_help_panel=NETWORKS)]
SigmaE = Annotated[float | None, Option(help="Sigma of the router.", rich_help_panel=NETWORKS)]
Sigma = Annotated[float | None, Option(help="The one sigma of a classifier without router.", rich_help_panel=NETWORKS)]
Core = Annotated[
    str | None,
    Option(
        help="ACES: a network that answers, without noise and so without a radius, where the entropy of the classifier "
        "is above a threshold.",
        rich_help_panel=NETWORKS,
    ),
]
Thresholds = Annotated[
    str | None,
    Option(
        help="With --core: thresholds of the entropy in nats, as 0.5,1.0. --rule aces-1 says which is the run's own; "
        "by default the first.",
        rich_help_panel=NETWORKS,
    ),
]
Selector = Annotated[
    str | None,
    Option(help="With --core: the network whose entropy counts; by default the classifier.", rich_help_panel=NETWORKS),
]
Data = Annotated[
    str | None,
    Option(
        help="cifar10:test, cifar10:subset, folder:PATH, hub:NAME:SPLIT, or module:attribute: a dataset, an array of "
        "images, or (images, labels).",
        rich_help_panel=DATA,
    ),
]
Resize = Annotated[
    int | None, Option(help="Resize images of folders and hubs: pixels of the shorter side.", rich_help_panel=DATA)
]
Crop = Annotated[int | None, Option(help="Then take the central square of this side.", rich_help_panel=DATA)]
Inputs = Annotated[
    str,
    Option(
        help="Which inputs: START:STOP:STEP of their positions (:: is all), or a random share, as 20%.",
        rich_help_panel=DATA,
    ),
]
Reuse = Annotated[
    Path | None,
    Option(
        help="An earlier ledger on these inputs with n votes or more: what networks of this run voted there is copied, "
        "not drawn again.",
        rich_help_panel=VOTES,
    ),
]
N = Annotated[int | None, Option(help="Estimation votes per stage; 10,000 by default.", rich_help_panel=VOTES)]
N0 = Annotated[int | None, Option(help="Selection votes per stage; 100 by default.", rich_help_panel=VOTES)]
Alpha = Annotated[
    float | None,
    Option(help="Probability that the answer for an input may be wrong; 0.001 by default.", rich_help_panel=VOTES),
]
RuleName = Annotated[
    str | None,
    Option(
        help="cohen (one sigma); paper, paper-1:4 (another split), nosplit, fusion or fusion-pair (two stages); "
        "aces-THRESHOLD (a core network). cohen, fusion or the first threshold by default.",
        rich_help_panel=VOTES,
    ),
]
Adaptive = Annotated[
    bool,
    Option(
        "--adaptive",
        help="Take n votes at most, and stop an input where more would not help: a fraction of the votes, the same "
        "guarantee.",
        rich_help_panel=VOTES,
    ),
]
TargetRadii = Annotated[
    str | None,
    Option(
        "--radii",
        help="With --adaptive: the radii to certify at, as 0,0.25,0.5; those of the tables by default.",
        rich_help_panel=VOTES,
    ),
]
TargetTolerance = Annotated[
    float | None,
    Option("--tolerance", help="With --adaptive: certify every radius up to this much.", rich_help_panel=VOTES),
]


def _seed(text: str) -> int:
    """A seed as dualrs writes it: decimal, or hexadecimal after 0x."""
    try:
        return int(text, 0)
    except ValueError as error:
        raise BadRecipe(f"--seed takes a whole number, decimal or hexadecimal (0x...), got {text!r}") from error


Seed = Annotated[
    int | None,
    Option(
        parser=_seed,
        metavar="INTEGER",
        help="Seed of the noise. Without one a secret seed is drawn, and recorded; a run that goes on keeps its own. "
        "Whoever knows the seed beforehand must not choose the images.",
        rich_help_panel=VOTES,
    ),
]
BatchSize = Annotated[
    int | None,
    Option(
        help="Shape of every batch, part of the run; 256 by default, less if memory asks for it.",
        rich_help_panel=ENGINE,
    ),
]
Device = Annotated[
    str | None, Option(help="cpu, cuda, mps; where the networks are by default.", rich_help_panel=ENGINE)
]
Dtype = Annotated[str | None, Option(help="float32 (default), bfloat16 or float16.", rich_help_panel=ENGINE)]
Compile = Annotated[
    bool,
    Option(
        "--compile",
        help="Have torch compile the networks: half a minute or so at the start, then faster batches. Needs a C++ "
        "compiler on the CPU; without one the networks run as they are.",
        rich_help_panel=ENGINE,
    ),
]
WorkerCount = Annotated[
    int | None,
    Option(
        "--workers",
        help="Count the votes in so many processes, each with a GPU or else with a share of the cores; the votes are "
        "the same. Needs Ray: pip install 'dualrs[scale]'.",
        rich_help_panel=WORKERS,
    ),
]
RayAddress = Annotated[
    str | None,
    Option(
        "--ray",
        help="Count them on a Ray cluster: HOST:PORT, or auto on one of its machines. A worker for each GPU, or else "
        "for each core, unless --workers says how many.",
        rich_help_panel=WORKERS,
    ),
]


def from_here(reference: str | None, folder: Path) -> str | None:
    """Paths on the command line start here, those in a recipe at the recipe; make the former absolute."""
    from dualrs.references import anchored

    return None if reference is None else anchored(reference, folder)


def expert_references(pairs: list[str] | None, folder: Path) -> dict[str, str | None] | None:
    """Experts as given on a command line, SIGMA=REFERENCE, by sigma."""
    if not pairs:
        return None
    split = [p.partition("=") for p in pairs]
    if any(not sign for _, sign, _ in split):
        raise BadRecipe("an expert is given as SIGMA=module:attribute, for example --expert 0.25=net.py:small")
    return {sigma: from_here(reference, folder) for sigma, _, reference in split}


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(t) for t in text.split(",")]
    except ValueError as error:
        raise BadRecipe(f"{option} takes numbers separated by commas, such as 0.25,0.5,1.0; got {text!r}") from error


def given(**settings: Any) -> dict[str, Any]:
    """The settings that were given; for the others, what takes them has its defaults."""
    return {name: value for name, value in settings.items() if value is not None}
