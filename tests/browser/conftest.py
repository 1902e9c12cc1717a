"""A page of two runs in a real browser; skipped where there is none."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))  # the ledgers of the report's own tests

from chromium import NAMES, Browser, find
from report_cases import a_header, made

from dualrs import DualSmoothed, certify_dataset
from dualrs.data.dataset import ArrayDataset
from dualrs.report.gallery import Copies
from dualrs.report.nearest import Nearest
from dualrs.report.page import Pictures, read_run, write_page
from dualrs.storage import Ledger
from dualrs.storage.attacks import Attack
from small import Small


@pytest.fixture(scope="session")
def ledgers(tmp_path_factory):
    """Two ledgers, by name."""
    folder = tmp_path_factory.mktemp("ledgers")
    return {
        "all": made(folder / "all.ledger", count=40),
        "few": made(folder / "few.ledger", a_header(seed=1, rule="paper"), count=9),
    }


@pytest.fixture(scope="session")
def report(tmp_path_factory, ledgers):
    """The page on disk, and the runs in it."""
    folder = tmp_path_factory.mktemp("report")
    runs = []
    for path in ledgers.values():
        with Ledger.open(path) as ledger:
            runs.append(read_run(ledger, path.stem))
    rng = np.random.default_rng(0)
    change = rng.integers(-9, 10, (3, 8, 8)).astype(np.int16)
    broken = Attack("toy/5", 1, 0.25, upper=0.75, answer=2, aim="class at sigma 0.5", searched=0.9, change=change)
    runs[0] = replace(runs[0], attacks={"toy/5": [Nearest("fusion", broken)]})
    images = {why.id: rng.integers(0, 256, (3, 8, 8), dtype=np.uint8) for why in runs[0].whys}
    copied = Copies(images["toy/3"], [images["toy/1"]] * 4, [None, images["toy/2"], None, None])
    pictures = [
        Pictures(images, ("cat", "dog", "owl", "<b>emu</b>"), copies={"toy/3": copied}),
        Pictures({}, note="No images."),
    ]
    page = folder / "report.html"
    page.write_text(write_page(runs, pictures, command="dualrs report", version="0"), encoding="utf-8")
    return page, runs


@pytest.fixture(scope="session")
def adaptive_ledger(tmp_path_factory):
    """A run that stopped where its certificates needed no more votes."""
    path = tmp_path_factory.mktemp("adaptive") / "adaptive.ledger"
    pixels = np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8)
    model = DualSmoothed(Small(1, answers=2), Small(), (0.1, 0.2), 0.2)
    certify_dataset(model, ArrayDataset(pixels, labels=[0, 1] * 4), path, n=800, n0=20, seed=1, budget="adaptive")
    return path


@pytest.fixture(scope="session")
def aces_page(tmp_path_factory):
    """A page of a run with a core network, and that run."""
    folder = tmp_path_factory.mktemp("aces")
    header = a_header(rule="aces-0.5", sigmas=(0.5,), sigma_e=0.5, thresholds=(0.5, 1.0))
    with Ledger.open(made(folder / "aces.ledger", header, count=30)) as ledger:
        run = read_run(ledger, "aces")
    page = folder / "report.html"
    page.write_text(write_page([run], [Pictures({})], command="dualrs report", version="0"), encoding="utf-8")
    return page, run


@pytest.fixture(scope="session")
def cascade_page(tmp_path_factory):
    """A page of a committed run without a router, and that run."""
    with Ledger.open(Path(__file__).parents[2] / "results" / "cascade" / "calibration.ledger") as ledger:
        run = read_run(ledger, "calibration")
    page = tmp_path_factory.mktemp("cascade") / "report.html"
    page.write_text(write_page([run], [Pictures({})], command="dualrs report", version="0"), encoding="utf-8")
    return page, run


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    program = find()
    if program is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is on the path")
    with Browser(program, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(chromium, report):
    """The page, freshly opened at the width of a desktop; a test that leaves a complaint on the console fails."""
    chromium.errors.clear()
    chromium.resize(1280)
    chromium.prefer("light")
    chromium.open(report[0])
    chromium.wait("document.querySelectorAll('#accuracy-chart path').length > 0")
    yield chromium
    assert chromium.errors == []
