"""The commands about networks: models lists what there is, evaluate measures one."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def models(
    name: Annotated[str | None, Argument(help="Show the whole card of this one.", show_default=False)] = None,
) -> None:
    """List the networks that come with dualrs or with packages it knows, and how to name others."""
    from rich.console import Console
    from rich.padding import Padding

    from dualrs.models import sources, zoo

    console = Console()
    if name is not None:
        for key, value in zoo.card(name.removeprefix("zoo:")).model_dump().items():
            console.print(f"[bold]{key}[/bold]  {value}", highlight=False, soft_wrap=True)
        return
    for entry in zoo.names():
        card = zoo.card(entry)
        console.print(f"[bold]zoo:{entry}[/bold]  ({card.licence})", highlight=False)
        scores = "; ".join(f"{k}: {v:g}" for k, v in card.scores.items())
        console.print(Padding(f"{card.what}.\n[dim]{scores}[/dim]", (0, 0, 1, 4)), highlight=False)
    console.print(f"Other networks are named as {sources.FORMS}, or module:attribute.", highlight=False)
    console.print("A network behind a denoiser is DENOISER | NETWORK, as in 'zoo:A | zoo:B'.", highlight=False)


def evaluate(
    network: Annotated[
        str, Argument(help="NETWORK or 'DENOISER | NETWORK' (see `dualrs models`).", show_default=False)
    ],
    data: Annotated[str, Option(help="Images with labels.")] = "cifar10:test",
    resize: Annotated[int | None, Option(help="Resize images of folders and hubs: pixels of the shorter side.")] = None,
    crop: Annotated[int | None, Option(help="Then take the central square of this side.")] = None,
    sigma: Annotated[str, Option(help="Noise levels, separated by commas; 0 is clean.")] = "0.25,0.5,1.0",
    seed: Annotated[int, Option(help="Seed of the noise.")] = 0,
    device: Annotated[str, Option(help="cpu, cuda or mps.")] = "cpu",
    dtype: Annotated[str | None, Option(help="float32 or bfloat16; by default whichever is faster here.")] = None,
) -> None:
    """Measure the accuracy of a base network on one noisy copy of each image, and its speed.

    This is no certificate: it says how good the network is that smoothing has to work with.
    """
    from rich.console import Console
    from rich.table import Table

    from dualrs.config import DataSection
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.build import build_data
    from dualrs.pipeline.networks import Networks
    from dualrs.progress import MeasuringBar
    from dualrs.training.classifier import measure
    from dualrs.training.noise import OneOf, parse_sigmas

    keep_memory()
    model = Networks(Path.cwd())(network)
    dataset = build_data(DataSection(source=data, resize=resize, crop=crop))
    table = Table("sigma", "accuracy", "images/s")
    levels = OneOf(parse_sigmas(sigma)).sigmas
    with MeasuringBar("measuring", len(levels) * len(dataset.ids)) as bar:
        for level in levels:
            found = measure(model, dataset, level, seed=seed, device=device, dtype=dtype, report=bar.update)
            table.add_row(f"{level:g}", f"{100 * found.accuracy:.2f}%", f"{found.images_per_second:,.0f}")
    Console().print(f"{network} on {dataset.name}, {len(dataset.ids):,} images", highlight=False)
    Console().print(table)
