"""The command that makes a router's labels: votes of every expert at its sigma."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from dualrs.cli.options import (
    BatchSize,
    Classifier,
    Compile,
    Crop,
    Data,
    Device,
    Dtype,
    Experts,
    Inputs,
    RayAddress,
    Resize,
    Seed,
    Sigmas,
    WorkerCount,
    expert_references,
    from_here,
    given,
    numbers,
)
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe


def label(
    ledger: Annotated[Path, Option("--ledger", "-o", help="Where the votes are kept.", show_default=False)],
    classifier: Classifier = None,
    expert: Experts = None,
    sigmas: Sigmas = "0.25,0.5,1.0",
    data: Data = "cifar10:train",
    resize: Resize = None,
    crop: Crop = None,
    inputs: Inputs = "::",
    reuse: Annotated[
        Path | None,
        Option(
            help="An earlier ledger of labels: the votes of every expert that it has at the same sigma are copied, and "
            "only the others vote. Its data, seed, n and engine must be those of this run."
        ),
    ] = None,
    n: Annotated[int, Option(help="Votes per sigma; the paper takes 100.")] = 100,
    alpha: Annotated[float, Option(help="Level of the bound behind each radius.")] = 0.001,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
    compile: Compile = False,
    workers: WorkerCount = None,
    ray: RayAddress = None,
) -> None:
    """Find out which sigma suits each training input: the radius that the true class gets at every one of them.

    A router learns from these. Stop it at any time; the same command goes on where it was. `dualrs show LEDGER` prints
    the distribution again. When an expert is added or exchanged, --reuse the old ledger: only that expert votes.

    Example: `dualrs label -o labels.ledger --classifier 'zoo:cifar10-denoiser | zoo:cifar10-classifier' --inputs ::10`
    """
    from dualrs.build import Networks, build_data
    from dualrs.cli.ledgers import show
    from dualrs.cli.progress import Bar
    from dualrs.config import DataSection
    from dualrs.data.subsets import parse_inputs
    from dualrs.jobs import label_dataset
    from dualrs.models.hardware import keep_memory
    from dualrs.smoothed import Pool

    if (classifier is None) == (not expert):
        raise BadRecipe("give either --classifier, or an --expert for each sigma")
    keep_memory()
    spread = Spread(workers, ray, device)
    here = Path.cwd()
    network = Networks(here)
    experts = expert_references(expert, here)
    model = Pool(
        network(str(from_here(classifier, here)))
        if experts is None
        else {float(sigma): network(str(reference)) for sigma, reference in experts.items()},
        numbers(sigmas, "--sigmas") or [],
        **given(batch_size=batch_size, device=spread.local_device, dtype=dtype, compile=compile),
    )
    dataset = build_data(DataSection(source=str(data), resize=resize, crop=crop), here)
    indices = parse_inputs(inputs, len(dataset.ids))
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with Bar("labelling", len(indices)) as bar, spread.over(bar, model):
        taken = label_dataset(
            model, dataset, ledger, n=n, alpha=alpha, seed=seed, indices=indices, reuse=reuse,
            command=shlex.join(["dualrs", *sys.argv[1:]]), report=bar.update,
        )  # fmt: skip
    if reuse is not None:
        print(f"took over {taken:,} votes from {reuse}")
    show(ledger)
