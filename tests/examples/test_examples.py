"""The examples, run as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which the networks of the digits were trained once."""
    folder = tmp_path_factory.mktemp("digits")
    assert "rule fusion" in run(
        folder, "-m", "dualrs", "certify", str(ROOT / "examples" / "digits.toml"), "--n", "500", "--inputs", ":40"
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


def test_wrapping_works(trained):
    out = run(trained, str(ROOT / "examples" / "wrap.py"))
    assert len(re.findall(r"^\d: (?:class \d|abstains)", out, flags=re.MULTILINE)) == 10
