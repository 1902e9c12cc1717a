"""The first minutes: the bundled job, and what bare commands say."""

import sys
from pathlib import Path

import pytest

from dualrs.cli import start
from dualrs.storage import Ledger


@pytest.mark.slow
def test_start_shows_a_first_table_goes_on_and_resumes(dualrs, monkeypatch):
    monkeypatch.setattr(start, "_FIRST", 1)
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "matplotlib", None)  # as after a plain pip install
        code, out, err = dualrs("start", "--inputs", "0:2")
    assert code == 0, err
    first, second = (out.index(f"at L2 radius, {count} inputs") for count in (1, 2))
    assert first < out.index("these are the first 1; 1 more follow") < second
    assert "no picture: drawing needs the package matplotlib" in out
    assert "dualrs why runs/quickstart.ledger test/" in out
    with Ledger.open("runs/quickstart.ledger") as ledger:
        assert ledger.header.command == "dualrs start --inputs 0:2"
    code, again, err = dualrs("start", "--inputs", "0:2")
    assert code == 0, err
    table = out[second : out.index("no picture")]  # all is there, so it is the only one
    assert again.startswith(f"certified accuracy (%) {table}drew runs/quickstart.png")
    assert Path("runs/quickstart.png").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["certify", "predict"])
@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ((), "model: is missing; data: is missing"),
        (("--classifier", "net.py:classifier", "--sigma", "0.5"), "settings: data: is missing"),
        (("--data", "net.py:data"), "settings: model: is missing"),
    ],
)
def test_a_command_without_networks_or_images_has_an_example(dualrs, command, words, missing):
    code, _, err = dualrs(command, *words)
    assert code == 2
    assert missing in err
    assert "--sigmas 0.25,0.5,1.0 --data cifar10:subset" in err
    assert "dualrs certify quickstart" in err


def test_a_recipe_that_is_not_there_is_answered_with_those_that_are(dualrs):
    code, _, err = dualrs("certify", "quikstart")
    assert code == 2
    assert "comes with dualrs: cifar10-cpu, cifar10-paper, imagenet-paper, quickstart" in err
