"""The command line: parse, call, print. What takes long to import is imported by the command that needs it."""

import sys
from importlib import import_module
from typing import Any

from typer import Exit, Option, Typer
from typer.core import TyperGroup
from typer.main import get_group

from dualrs.errors import DualrsError

# Every command: under which heading the help shows it, and the module and name of its function or of its group.
COMMANDS = {
    "Certify and look": {
        "start": "start:start",
        "certify": "sample:certify",
        "predict": "sample:predict",
        "panel": "panel:panel",
        "show": "ledgers:show",
        "compare": "compare:compare",
        "tune": "tune:tune",
        "report": "report:report",
        "watch": "watch:watch",
        "figure": "report:figure",
        "board": "board:board",
        "why": "why:why",
        "attack": "attack:attack",
        "memory": "memory:memory",
    },
    "Train": {
        "dual": "dual:dual",
        "label": "teach:label",
        "assign": "teach:assign",
        "train": "train:train_app",
        "rounds": "rounds:rounds",
        "recipe": "rounds:recipe_app",
    },
    "Data and models": {
        "data": "data:data_app",
        "models": "models:models_app",
        "evaluate": "models:evaluate",
        "quantise": "quantise:quantise",
    },
    "More": {
        "verify": "ledgers:verify",
        "export": "ledgers:export",
        "import": "ledgers:import_",
        "flips": "flips:flips",
        "merge": "ledgers:merge",
        "status": "status:status",
    },
}


class _Lazy(TyperGroup):
    """The commands, each imported when it is asked for; the help asks for all."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: None for commands in COMMANDS.values() for name in commands}  # type: ignore[misc]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        for heading, commands in COMMANDS.items():
            if cmd_name in commands:
                module, _, attribute = commands[cmd_name].partition(":")
                found = getattr(import_module(f"dualrs.cli.{module}"), attribute)
                alone = Typer(rich_markup_mode="markdown")
                if isinstance(found, Typer):
                    alone.add_typer(found, name=cmd_name, rich_help_panel=heading)
                else:
                    alone.command(cmd_name, rich_help_panel=heading)(found)
                return get_group(alone).commands[cmd_name]
        return None


app = Typer(
    name="dualrs",
    cls=_Lazy,
    help=(
        "Certify image classifiers against L2 perturbations with dual randomized smoothing.\n\n"
        "Sample once, certify every way: `certify` runs the networks and keeps every vote in a ledger; `show`, "
        "`verify` and `export` work from the ledger alone.\n\n"
        "First steps:  dualrs start,  then  dualrs certify --help"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(version: bool = Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from dualrs.version import __version__

        print(f"dualrs {__version__}")
        raise Exit


def main() -> None:
    """Run the command line; errors that dualrs knows become one sentence and exit code 2."""
    try:
        app()
    except DualrsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:  # what the parser makes of an interrupt
            print("stopped; what was recorded is kept: run the same command again to resume", file=sys.stderr)
        raise
