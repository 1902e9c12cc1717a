"""Rounds with losses of the user's own, named in the recipe beside which they lie."""

import shutil

import pytest
import toy
from safetensors.torch import load_file
from small_run import RECIPE, dualrs

from dualrs.models.card import Card

MINE = """
import torch.nn.functional as F


def lost_radius(logits, radii):
    return (radii.amax(dim=1) - (logits.softmax(dim=-1) * radii).sum(dim=-1)).mean(dim=0)


def entropy(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


def mean(logits, labels):
    return F.cross_entropy(logits, labels)


number = 3
"""
OWN = """
[label]
inputs = "0:120"
[assign]
inputs = "0:120"
[router]
loss = "mine.py:lost_radius"
[finetune]
loss = "mine.py:entropy"
"""


@pytest.fixture
def recipe(tmp_path):
    """A recipe over that of the toy problem: fewer inputs, and the first two rounds."""
    shutil.copy(toy.__file__, tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "toy.toml").write_text(RECIPE.replace("consistency_weight = 2.0\n", ""))

    def write(text=OWN):
        path = tmp_path / "own.toml"
        path.write_text(f'base = "toy.toml"\nrounds = ["router", "classifier"]\n{text}')
        return path

    return write


def test_rounds_train_by_the_losses_of_the_recipe(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir("/")  # the losses lie beside the recipe, wherever one is
    assert dualrs("rounds", recipe(), "-o", tmp_path / "own") == 0
    router, tuned = (Card.read(tmp_path / "own" / name) for name in ("1-router.json", "2-classifier.json"))
    assert ", loss lost_radius " in router.training
    assert ", loss entropy " in tuned.training
    assert str(tmp_path) not in router.training  # the same training from another folder
    plain = recipe(OWN.replace('loss = "mine.py:entropy"', "halve_every = 6"))
    for product in ("1-labels.ledger", "1-router.safetensors", "1-router.json", "2-assigned.ledger"):
        (tmp_path / "ours").mkdir(exist_ok=True)
        shutil.copy(tmp_path / "own" / product, tmp_path / "ours")
    assert dualrs("rounds", plain, "-o", tmp_path / "ours") == 0
    ours, own = (load_file(tmp_path / run / "2-classifier.safetensors") for run in ("ours", "own"))
    assert all(tensor.allclose(ours[name], atol=1e-5) for name, tensor in own.items())  # the same loss


def test_another_loss_is_another_training(recipe, tmp_path, capsys):
    assert dualrs("rounds", recipe(), "-o", tmp_path / "own") == 0
    (tmp_path / "mine.py").write_text(MINE.replace("amax(dim=1)", "amax(dim=1) + 1"))
    assert dualrs("rounds", recipe(), "-o", tmp_path / "own") == 2


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mine.py:lost_radius", "mine.py:none", "mine.py has no attribute 'none'"),
        ("mine.py:lost_radius", "mine.py:number", "is a int, and a loss is a function of logits and targets"),
        ("mine.py:entropy", "mine.py:mean", "one loss for each of 40 inputs; it returned shape ()"),
        ("[finetune]", 'gate = "weak"\n[finetune]', "lost_radius takes the place of gate; leave them out"),
    ],
    ids=["nothing of this name", "no function", "a mean", "a setting of the loss it replaces"],
)
def test_losses_that_cannot_be_used_are_refused(recipe, tmp_path, capsys, old, new, sentence):
    assert dualrs("rounds", recipe(OWN.replace(old, new)), "-o", tmp_path / "own") == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "own" / "1-labels.ledger").exists() == (new == "mine.py:mean")  # which only the step can tell
