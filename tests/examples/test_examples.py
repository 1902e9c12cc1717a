"""The examples and the recipe of the quickstart, run as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which the networks of the digits were trained once."""
    folder = tmp_path_factory.mktemp("digits")
    assert "rule fusion" in run(
        folder, "-m", "dualrs", "certify", str(ROOT / "recipes" / "digits.toml"), "--n", "500", "--inputs", ":40"
    )
    return folder


def run(folder, *words, **variables):
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120"} | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_recipe_of_the_digits_certifies_most_of_them(trained):
    shown = run(trained, "-m", "dualrs", "show", "runs/digits.ledger")
    accuracy = float(re.search(r"│\s*([\d.]+) ", shown)[1])
    assert accuracy > 80


def test_the_quickstart_certifies_draws_and_needs_no_network(tmp_path):
    """The bundled networks on the bundled images, with every way out of this machine closed."""
    closed = tmp_path / "sitecustomize.py"
    closed.write_text(
        "import socket\n"
        "def refuse(*a, **k):\n"
        "    raise AssertionError('the quickstart asked the network')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
    )
    recipe = str(ROOT / "recipes" / "quickstart.toml")
    words = re.search(r"^METHODS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    few = ("--inputs", "0:6", "--n", "200")

    def dualrs(*words):
        return run(tmp_path, "-m", "dualrs", *words, PYTHONPATH=str(tmp_path))

    assert "sampled 6 inputs" in dualrs("panel", recipe, "-o", "runs", *few)
    shown = dualrs("compare", "runs/quickstart.ledger", "--methods", words)
    assert all(f"│ {name} " in shown for name in words.split(","))
    assert "drew c.png" in dualrs("figure", "accuracy", "runs/quickstart.ledger", "--methods", words, "-o", "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000


def test_first_lines_of_the_readme_run_as_they_are(tmp_path):
    """And print what is shown; other processors may round otherwise and change a vote or two."""
    snippet, shown = re.search(r"```python\n(import dualrs\n.*?)```\n```\n(.*?)```", README, re.DOTALL).groups()
    out = run(tmp_path, "-c", snippet)
    radius = r"(?<=radius )[\d.]+"
    assert re.sub(radius, "R", out) == re.sub(radius, "R", shown)
    ours, theirs = ([float(r) for r in re.findall(radius, text)] for text in (out, shown))
    assert ours == pytest.approx(theirs, abs=0.01)


def test_wrapping_works_as_the_readme_says(trained):
    out = run(trained, str(ROOT / "examples" / "wrap.py"))
    assert len(re.findall(r"^\d: (?:class \d|abstains)", out, flags=re.MULTILINE)) == 10
    assert (ROOT / "examples" / "wrap.py").read_text().partition("\n\n")[2].strip() in (ROOT / "README.md").read_text()
