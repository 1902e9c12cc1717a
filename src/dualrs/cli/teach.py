"""The commands that make what networks learn from: label, votes of every expert, and assign, votes of the router."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Option

from dualrs.cli.ledgers import show
from dualrs.cli.options import DataOptions, EngineOptions, NetworkOptions, VoteOptions, WorkerOptions, this_command
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.smoothed import SmoothedModel

T = TypeVar("T")
_SIGMAS = "0.25,0.5,1.0"

LessonFile = Annotated[Path, Option("--ledger", "-o", help="Where the votes are kept.", show_default=False)]
TrainingData = Annotated[DataOptions, Only("resize", "crop", "inputs", data="cifar10:train")]
Seed = Annotated[VoteOptions, Only("seed")]


@spread_out
def label(
    ledger: LessonFile,
    reuse: Annotated[
        Path | None,
        Option(
            help="An earlier ledger of labels: the votes of every expert that it has at the same sigma are copied, and "
            "only the others vote; if it has fewer than n, this run goes on from them. Its data, seed and engine must "
            "be those of this run."
        ),
    ] = None,
    n: Annotated[int, Option(help="Votes per sigma; the paper takes 100.")] = 100,
    alpha: Annotated[float, Option(help="Level of the bound behind each radius.")] = 0.001,
    *,
    networks: Annotated[NetworkOptions, Only("classifier", "expert", sigmas=_SIGMAS)],
    data: TrainingData,
    votes: Seed,
    engine: EngineOptions,
    workers: WorkerOptions,
) -> None:
    """Find out which sigma suits each training input: the radius that the true class gets at every one of them.

    A router learns from these. Stop it at any time; run the same command again to resume. `dualrs show LEDGER` prints
    the distribution again. When an expert is added or exchanged, --reuse the old ledger: only that expert votes.

    Example: `dualrs label -o labels.ledger --classifier 'zoo:cifar10-denoiser | zoo:cifar10-classifier' --inputs ::10`
    """
    from dualrs.jobs import label_dataset
    from dualrs.pipeline.networks import Networks
    from dualrs.smoothed import Pool

    if (networks.classifier is None) == (not networks.expert):
        raise BadRecipe("give either --classifier, or an --expert for each sigma")
    spread = Spread(workers, engine.device, ledger)
    named = networks.section()
    classifier = Networks(Path.cwd()).classifier(named["classifier"], named["experts"])
    model = Pool(classifier, named["sigmas"], **_engine(engine, spread))
    job = partial(label_dataset, n=n, alpha=alpha, seed=votes.seed, reuse=reuse)
    taken = _collect(job, "labelling", ledger, model, data, spread)
    if reuse is not None:
        print(f"took over {taken:,} votes from {reuse}")
    show(ledger)


@spread_out
def assign(
    ledger: LessonFile,
    n: Annotated[int, Option(help="Votes per input.")] = 100,
    alpha: Annotated[float, Option(help="Level of the test that calls an input decided.")] = 0.001,
    *,
    networks: Annotated[NetworkOptions, Only(router=..., sigmas=_SIGMAS, sigma_e=1.0)],
    data: TrainingData,
    votes: Seed,
    engine: EngineOptions,
    workers: WorkerOptions,
) -> None:
    """Assign a sigma to every training input: the one that the smoothed router names (PREDICT of Cohen et al.).

    A classifier is fine-tuned on these. Where the votes do not decide at level alpha, the input takes the sigma that
    most of them name all the same, the smaller one in a tie: training needs no guarantee. `dualrs show LEDGER` counts
    both kinds.

    Stop it at any time; run the same command again to resume.

    Example: `dualrs assign -o assigned.ledger --router 'zoo:cifar10-denoiser | router.safetensors' --inputs ::10`
    """
    from dualrs.jobs import assign_dataset
    from dualrs.pipeline.networks import Networks
    from dualrs.smoothed import RouterAlone

    spread = Spread(workers, engine.device, ledger)
    named = networks.section()
    router = Networks(Path.cwd())(named["router"])
    model = RouterAlone(router, named["sigmas"], named["sigma_e"], **_engine(engine, spread))
    job = partial(assign_dataset, n=n, alpha=alpha, seed=votes.seed)
    _collect(job, "assigning", ledger, model, data, spread)
    show(ledger)


def _engine(options: EngineOptions, spread: Spread) -> dict[str, Any]:
    """How a model of this process runs; what was not given has the model's own default."""
    settings = {**options.section(), "device": spread.local_device}
    return {name: value for name, value in settings.items() if value is not None}


def _collect(
    job: Callable[..., T], title: str, ledger: Path, model: "SmoothedModel", data: DataOptions, spread: Spread
) -> T:
    """Have a job collect the votes of a model on the data, with a bar on the terminal."""
    from dualrs.data.subsets import parse_inputs
    from dualrs.progress import Bar

    dataset = data.open()
    indices = parse_inputs(data.inputs, len(dataset.ids))
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with Bar(title, len(indices)) as bar, spread.over(bar, model):
        return job(model, dataset, ledger, indices=indices, command=this_command(), report=bar.update)
