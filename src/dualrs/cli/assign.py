"""The command that assigns a sigma to every training input: votes of the router alone."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from dualrs.cli.options import (
    NETWORKS,
    BatchSize,
    Compile,
    Crop,
    Data,
    Device,
    Dtype,
    Inputs,
    RayAddress,
    Resize,
    Router,
    Seed,
    Sigmas,
    WorkerCount,
    from_here,
    given,
    numbers,
)
from dualrs.cli.workers import Spread


def assign(
    ledger: Annotated[Path, Option("--ledger", "-o", help="Where the votes are kept.", show_default=False)],
    router: Router,
    sigmas: Sigmas = "0.25,0.5,1.0",
    sigma_e: Annotated[float, Option(help="Sigma of the router.", rich_help_panel=NETWORKS)] = 1.0,
    data: Data = "cifar10:train",
    resize: Resize = None,
    crop: Crop = None,
    inputs: Inputs = "::",
    n: Annotated[int, Option(help="Votes per input.")] = 100,
    alpha: Annotated[float, Option(help="Level of the test that calls an input decided.")] = 0.001,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
    compile: Compile = False,
    workers: WorkerCount = None,
    ray: RayAddress = None,
) -> None:
    """Assign a sigma to every training input: the one that the smoothed router names (PREDICT of Cohen et al.).

    A classifier is fine-tuned on these. Where the votes do not decide at level alpha, the input takes the sigma that
    most of them name all the same, the smaller one in a tie: training needs no guarantee. `dualrs show LEDGER` counts
    both kinds.

    Stop it at any time; the same command goes on where it was.

    Example: `dualrs assign -o assigned.ledger --router 'zoo:cifar10-denoiser | router.safetensors' --inputs ::10`
    """
    from dualrs.build import Networks, build_data
    from dualrs.cli.ledgers import show
    from dualrs.cli.progress import Bar
    from dualrs.config import DataSection
    from dualrs.data.subsets import parse_inputs
    from dualrs.jobs import assign_dataset
    from dualrs.models.hardware import keep_memory
    from dualrs.smoothed import RouterAlone

    keep_memory()
    spread = Spread(workers, ray, device)
    here = Path.cwd()
    model = RouterAlone(
        Networks(here)(str(from_here(router, here))),
        numbers(sigmas, "--sigmas") or [],
        sigma_e,
        **given(batch_size=batch_size, device=spread.local_device, dtype=dtype, compile=compile),
    )
    dataset = build_data(DataSection(source=str(data), resize=resize, crop=crop), here)
    indices = parse_inputs(inputs, len(dataset.ids))
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with Bar("assigning", len(indices)) as bar, spread.over(bar, model):
        assign_dataset(
            model, dataset, ledger, n=n, alpha=alpha, seed=seed, indices=indices,
            command=shlex.join(["dualrs", *sys.argv[1:]]), report=bar.update,
        )  # fmt: skip
    show(ledger)
