"""A recipe for the toy problem, and how to run commands."""

import sys

import pytest

from dualrs.cli import main

RECIPE = """
title = "toy"
data = "toy.py:train"
test = "toy.py:test"

[start]
classifier = "toy.py:classifier"
sigmas = [0.25, 1.0]
sigma_e = 1.0

[router]
network = "toy.py:router"
epochs = 12
batch_size = 40
rate = 0.1
consistency_weight = 2.0

[finetune]
epochs = 12
batch_size = 40
rate = 0.05
halve_every = 6

[certify]
n = 1000
rule = "paper"
"""


def dualrs(*words: object) -> int:
    """Run a command in this process; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dualrs", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0)
