"""The help: commands under headings, and only the module of the command at hand imported."""

import re
import subprocess
import sys

import pytest

from dualrs.cli import COMMANDS

GROUPS = {
    "Certify and look": [
        "start",
        "certify",
        "predict",
        "panel",
        "show",
        "compare",
        "tune",
        "report",
        "watch",
        "figure",
        "board",
        "why",
        "attack",
        "memory",
    ],
    "Train": ["dual", "label", "assign", "train", "rounds", "recipe"],
    "Data and models": ["data", "models", "evaluate", "quantise"],
    "More": ["verify", "export", "import", "flips", "merge", "status"],
}
IMPORTED = """
import atexit, sys
atexit.register(lambda: print("imported", *(m for m in sys.modules if m.startswith("dualrs.cli."))))
from dualrs.cli import main
main()
"""


def test_help_shows_the_commands_under_headings(dualrs):
    code, out, _ = dualrs("--help")
    assert code == 0
    found = {}
    for line in out.splitlines():
        if heading := re.match(r"╭─ (.+?) ─", line):
            commands = found.setdefault(heading[1], [])
        elif command := re.match(r"│ ([a-z]+) ", line):
            commands.append(command[1])
    assert found.pop("Options") == []
    assert found == GROUPS


@pytest.mark.parametrize("name", [name for group in GROUPS.values() for name in group])
def test_every_command_has_help(dualrs, name):
    code, out, _ = dualrs(name, "-h")
    assert code == 0
    assert f"dualrs {name} " in out
    assert sum(name in commands for commands in COMMANDS.values()) == 1


def test_a_command_that_is_misspelt_is_guessed(dualrs):
    code, _, err = dualrs("certfy")
    assert code == 2
    assert "Did you mean 'certify'" in err


@pytest.mark.parametrize(
    ("command", "own", "others"),
    [
        ("show", "ledgers", ("train", "rounds", "teach", "sample", "panel", "models", "data")),
        ("train", "train", ("rounds", "teach", "sample", "report", "why")),
        ("models", "models", ("train", "rounds", "teach", "sample", "ledgers")),
    ],
)
def test_a_command_imports_its_own_module(command, own, others):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, command, "--help"], capture_output=True, text=True, check=True
    )
    imported = done.stdout.splitlines()[-1].split()
    assert f"dualrs.cli.{own}" in imported
    assert not {f"dualrs.cli.{other}" for other in others} & set(imported)


def test_sets_of_options_read_the_same_everywhere(dualrs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    for command in ("certify", "predict", "panel", "label", "assign"):
        _, out, _ = dualrs(command, "--help")
        assert "Seed of the noise. Without one a secret seed is drawn" in out
        assert "Shape of every batch, part of the run; 256 by default" in out
    _, out, _ = dualrs("certify", "--help")
    assert "stop when the radius is within this distance of the best reachable one." in out
    assert "Several without a router are certified as a cascade." in out
