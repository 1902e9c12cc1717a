"""Run the campaigns, print their figures, and end with code 1 if anything was found.

python -m soak                             # all three, about an hour on two cores
python -m soak simulations --scale 0.1     # a tenth of one
python -m soak mutations --case ledger/18  # one mutation again, with its traceback
"""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from dualrs.version import __version__
from soak.kills import kill
from soak.mutations import mutate, show_case
from soak.report import Report, Settings
from soak.simulations import simulate

CAMPAIGNS: dict[str, Callable[[Settings, Console], Report]] = {
    "kills": kill,
    "mutations": mutate,
    "simulations": simulate,
}


def main() -> int:
    """The exit code: 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__.partition("\n")[0])
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=f"{', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so many, shared by the campaigns")
    parser.add_argument("--seed", type=int, default=0, help="decides moments, mutations and votes")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the usual numbers")
    parser.add_argument("--output", type=Path, help="keep the figures in a JSON file")
    parser.add_argument("--case", help="do one mutation again: KIND/NUMBER")
    asked = parser.parse_args()
    names = asked.campaigns or list(CAMPAIGNS)
    if unknown := [name for name in names if name not in CAMPAIGNS]:
        parser.error(f"there is no campaign {', '.join(unknown)}; choose among {', '.join(CAMPAIGNS)}")
    console = Console()
    seconds = float("inf") if asked.minutes is None else 60 * asked.minutes / len(names)
    settings = Settings(asked.seed, asked.scale, seconds)
    if asked.case:
        return int(bool(show_case(settings, asked.case, console).violations))
    command = shlex.join(["python", "-m", "soak", *sys.argv[1:]])
    figures: dict[str, object] = {"command": command, "dualrs": __version__, "python": platform.python_version()}
    found = 0
    for name in names:
        report = CAMPAIGNS[name](settings, console)
        report.show(console)
        figures[name], found = report.as_json(), found + len(report.violations)
        if asked.output is not None:  # after each, as the next may be stopped
            asked.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    console.print(f"command: {command}", highlight=False)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
