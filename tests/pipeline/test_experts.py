"""Routing over a pool of experts: each votes at its own sigma, and exchanging one costs the votes of that one."""

import json

import pytest
from small_run import RECIPE, dualrs

from dualrs.storage import Ledger

EXPERTS = 'experts = {"0.25" = "toy.py:classifier", "1.0" = "toy.py:best_classifier"}'
POOL = (
    'rounds = ["router"]\n' + RECIPE.replace('classifier = "toy.py:classifier"', EXPERTS) + '[label]\ninputs = "50%"\n'
)


@pytest.fixture(scope="module")
def pool(run):
    """The folder of a run with experts, beside the recipe of the one without."""
    (run.parent / "pool.toml").write_text(POOL)
    assert dualrs("rounds", run.parent / "pool.toml", "-o", run.parent / "pool") == 0
    return run.parent / "pool"


def votes(path):
    with Ledger.open(path) as ledger:
        return ledger.votes(ledger.complete())


def test_each_expert_votes_at_its_sigma(pool, run):
    with Ledger.open(pool / "1-labels.ledger") as ledger, Ledger.open(run / "1-labels.ledger") as single:
        models, one = ledger.header.models, single.header.models
    assert models["class 0.25"] == one["class 0.25"]
    assert models["class 1.0"] != one["class 1.0"]


def test_sigmas_are_not_balanced_for_experts_and_are_for_one_classifier(pool, run):
    assert "balanced=False" in json.loads((pool / "1-router.json").read_text())["training"]
    assert "balanced=True" in json.loads((run / "1-router.json").read_text())["training"]


def test_bundle_of_experts_certifies(pool, capsys):
    words = ("--model", pool / "bundle", "-o", pool / "test.ledger", "--inputs", "0:10", "--n", "200")
    assert dualrs("certify", *words) == 0
    assert "certified accuracy" in capsys.readouterr().out


def test_exchanged_expert_alone_votes_again(pool):
    swapped = POOL.replace('"toy.py:best_classifier"', '"toy.py:classifier"')
    reuse = f'reuse = "{pool}/1-labels.ledger"\n'
    (pool.parent / "swapped.toml").write_text(swapped + reuse)
    assert dualrs("rounds", pool.parent / "swapped.toml", "-o", pool.parent / "swapped") == 0
    before, after = votes(pool / "1-labels.ledger"), votes(pool.parent / "swapped" / "1-labels.ledger")
    assert (before[0].estimation == after[0].estimation).all()
    assert (before[1].estimation != after[1].estimation).any()


def test_fewer_inputs_are_another_training(pool, capsys):
    (pool.parent / "fewer.toml").write_text(POOL.replace("50%", "40%"))
    assert dualrs("rounds", pool.parent / "fewer.toml", "-o", pool) == 2
    assert "1-router.safetensors belongs to another training" in capsys.readouterr().err
