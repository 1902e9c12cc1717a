"""A small problem in a file of its own, named on the command line as a user would name theirs."""

import sys

import pytest

from dualrs.cli import main

NETWORKS = '''
import torch
from torch import nn


class Half(nn.Module):
    """Answers by the mean of the image: one logit per answer, each highest at its own grey level."""

    def __init__(self, levels):
        super().__init__()
        self.levels = nn.Parameter(torch.tensor(levels))

    def forward(self, x):
        return -(x.mean(dim=(1, 2, 3))[:, None] - self.levels).abs()


router = Half([0.2, 0.8]).eval()
classifier = Half([0.1, 0.5, 0.9]).eval()
training = Half([0.1, 0.5, 0.9])
numbers = [1, 2, 3]


class NaN(nn.Module):
    def forward(self, x):
        return torch.full((len(x), 3), float("nan"))


nan = NaN().eval()


def data():
    grey = torch.linspace(0, 255, 12).byte()
    return grey[:, None, None, None].expand(12, 1, 4, 4), (grey.float() / 255 * 3).long().clamp(max=2)


def unlabelled():
    return data()[0]


def bright():
    return data()[0].float() * 2


def needs_arguments(a):
    return a
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(NETWORKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def dualrs(monkeypatch, capsys):
    """Run the command line in this process; returns exit code, standard output, standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrs", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


TWO_STAGES = (
    *("--router", "net.py:router", "--classifier", "net.py:classifier", "--sigmas", "0.1,0.2", "--sigma-e", "0.2"),
    *("--data", "net.py:data", "--n", "200", "--n0", "20", "--seed", "0"),
)


@pytest.fixture
def two_stages():
    return TWO_STAGES


@pytest.fixture
def ledger(dualrs, two_stages, folder):
    """A run with the votes that every method needs."""
    code, _, err = dualrs("certify", *two_stages, "--all-votes", "-o", "run.ledger")
    assert code == 0, err
    return folder / "run.ledger"
