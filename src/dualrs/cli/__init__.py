"""The command line: parse, call, print. What takes long to import is imported by the command that needs it."""

import sys

import typer

from dualrs.cli.assign import assign
from dualrs.cli.compare import compare
from dualrs.cli.data import data_app
from dualrs.cli.label import label
from dualrs.cli.ledgers import export, import_, merge, show, verify
from dualrs.cli.models import evaluate, models
from dualrs.cli.panel import panel
from dualrs.cli.report import figure, report
from dualrs.cli.rounds import recipe_app, rounds
from dualrs.cli.sample import certify, predict
from dualrs.cli.status import status
from dualrs.cli.train import train_app
from dualrs.cli.why import why
from dualrs.errors import DualrsError

app = typer.Typer(
    name="dualrs",
    help=(
        "Certify image classifiers against L2 perturbations with dual randomized smoothing.\n\n"
        "Sample once, certify every way: `certify` runs the networks and keeps every vote in a ledger; `show`, "
        "`verify` and `export` work from the ledger alone.\n\n"
        "First steps:  dualrs certify recipes/quickstart.toml --inputs 0:20,  then  dualrs show runs/quickstart.ledger"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, name in (
    (certify, "certify"),
    (predict, "predict"),
    (panel, "panel"),
    (show, "show"),
    (compare, "compare"),
    (report, "report"),
    (figure, "figure"),
    (why, "why"),
    (verify, "verify"),
    (export, "export"),
    (import_, "import"),
    (merge, "merge"),
    (label, "label"),
    (assign, "assign"),
    (status, "status"),
    (rounds, "rounds"),
    (models, "models"),
    (evaluate, "evaluate"),
):
    app.command(name)(command)
app.add_typer(train_app, name="train")
app.add_typer(data_app, name="data")
app.add_typer(recipe_app, name="recipe")


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from dualrs.version import __version__

        print(f"dualrs {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors that dualrs knows become one sentence and exit code 2."""
    try:
        app()
    except DualrsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:  # what the parser makes of an interrupt
            print("stopped; what was recorded is kept, and the same command goes on from there", file=sys.stderr)
        raise
