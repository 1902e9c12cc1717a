"""The commands about networks: models lists what there is, models push gives one away, evaluate measures one."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option, Typer
from typer.core import TyperGroup

from dualrs.cli.device import chosen_device
from dualrs.cli.options import DEVICE, DataOptions
from dualrs.cli.sets import Only, spread_out


class _Named(TyperGroup):
    """What is no command is the name of a network, whose card is shown."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word, or `card` with it."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["card", *args])


models_app = Typer(cls=_Named, invoke_without_command=True)


@models_app.callback()
def models(ctx: Context) -> None:
    """List the networks that come with dualrs or with packages it knows, and how to name others.

    `dualrs models NAME` shows the whole card of one.
    """
    if ctx.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.padding import Padding

    from dualrs.models import sources, zoo

    console = Console()
    for entry in zoo.names():
        card = zoo.card(entry)
        console.print(f"[bold]zoo:{entry}[/bold]  ({card.licence})", highlight=False)
        scores = "; ".join(f"{k}: {v:g}" for k, v in card.scores.items())
        console.print(Padding(f"{card.what}.\n[dim]{scores}[/dim]", (0, 0, 1, 4)), highlight=False)
    console.print(f"Other networks are named as {sources.FORMS}, or module:attribute.", highlight=False)
    console.print("A network behind a denoiser is DENOISER | NETWORK, as in 'zoo:A | zoo:B'.", highlight=False)


@models_app.command()
def card(name: Annotated[str, Argument(help="A network of the zoo.", show_default=False)]) -> None:
    """Show the whole card of a network."""
    from rich.console import Console

    from dualrs.models import zoo

    for key, value in zoo.card(name.removeprefix("zoo:")).model_dump().items():
        Console().print(f"[bold]{key}[/bold]  {value}", highlight=False, soft_wrap=True)


@models_app.command()
def push(
    bundle: Annotated[Path, Argument(help="The folder of a model: what `dualrs rounds` made.", show_default=False)],
    repo: Annotated[str, Argument(help="The repository on the Hugging Face hub, owner/name.", show_default=False)],
    licence: Annotated[str, Option(help="Under which licence you give it, such as apache-2.0.", show_default=False)],
    ledger: Annotated[
        list[Path] | None,
        Option(help="A run of this model, for its card; may be given again.", show_default=False),
    ] = None,
    private: Annotated[bool, Option("--private", help="Make the repository private, if it is new.")] = False,
) -> None:
    """Push a model to a hub: its weights, its recipe, and a card with certified accuracies, n and alpha.

    `DualSmoothed.from_pretrained("owner/name")`, or `Cascade`, gets it back. Log in first: `hf auth login`.

    Example: `dualrs models push runs/cifar10-cpu/bundle me/dual --licence apache-2.0 --ledger test.ledger`
    """
    from dualrs.hub import push_to_hub

    print(f"pushed {bundle} to {push_to_hub(bundle, repo, licence=licence, ledgers=ledger or (), private=private)}")


@spread_out
def evaluate(
    network: Annotated[
        str, Argument(help="NETWORK or 'DENOISER | NETWORK' (see `dualrs models`).", show_default=False)
    ],
    sigma: Annotated[str, Option(help="Noise levels, separated by commas; 0 is clean.")] = "0.25,0.5,1.0",
    seed: Annotated[int, Option(help="Seed of the noise.")] = 0,
    device: Annotated[str | None, Option(help=DEVICE)] = None,
    dtype: Annotated[str | None, Option(help="float32 or bfloat16; by default whichever is faster here.")] = None,
    *,
    data: Annotated[DataOptions, Only("resize", "crop", data="cifar10:test")],
) -> None:
    """Measure the accuracy of a base network on one noisy copy of each image, and its speed.

    This is no certificate: it says how good the network is that smoothing has to work with.
    """
    from rich.console import Console
    from rich.table import Table

    from dualrs.pipeline.networks import Networks
    from dualrs.progress import MeasuringBar
    from dualrs.training.classifier import measure
    from dualrs.training.noise import OneOf, parse_sigmas

    model = Networks(Path.cwd())(network)
    dataset = data.open()
    table = Table("sigma", "accuracy", "images/s")
    levels = OneOf(parse_sigmas(sigma)).sigmas
    device = chosen_device(device)
    with MeasuringBar("measuring", len(levels) * len(dataset.ids)) as bar:
        for level in levels:
            found = measure(model, dataset, level, seed=seed, device=device, dtype=dtype, report=bar.update)
            table.add_row(f"{level:g}", f"{100 * found.accuracy:.2f}%", f"{found.images_per_second:,.0f}")
    Console().print(f"{network} on {dataset.name}, {len(dataset.ids):,} images", highlight=False)
    Console().print(table)
