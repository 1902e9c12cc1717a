"""From labels to a router to certificates, on the command line, where the best sigma of each input is known."""

import json

import pytest
from typer.main import get_command

from dualrs.cli.train import train_app
from dualrs.config.sections import RouterSection

PROBLEM = """
import numpy as np
import torch
from torch import nn
from dualrs.data.dataset import ArrayDataset

class Brittle(nn.Module):
    '''Right about bright images at both sigmas; about dark ones at the smaller only.'''

    def forward(self, x, sigma):
        bright = x.mean(dim=(1, 2, 3)) - 0.5
        right = bright if sigma < 0.3 else bright.abs()
        return torch.stack([-right, right], dim=1) * 10

classifier = Brittle().eval()

def images(count, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    grey = np.where(labels, 220, 30) + generator.integers(-10, 10, count)
    pixels = np.broadcast_to(grey[:, None, None, None], (count, 3, 16, 16)).astype(np.uint8)
    return ArrayDataset(pixels, labels, name="greys")

def train():
    return images(240, 0)

def test():
    return images(12, 1)

def other():
    return images(240, 2)
"""
SIGMAS = ("--sigmas", "0.25,0.5")
LABEL = (
    "label",
    "-o",
    "labels.ledger",
    "--classifier",
    "p.py:classifier",
    *SIGMAS,
    "--data",
    "p.py:train",
    "--n",
    "50",
)
QUICK = (
    "--epochs", "8", "--batch-size", "32", "--rate", "0.005", "--halve-every", "4", "--sigma-e", "0.5",
    "--consistency-weight", "5", "--network-args", '{"widths": [8], "blocks": [1]}',
)  # fmt: skip
ROUTER = ("train", "router", "r.safetensors", "--labels", "labels.ledger", "--data", "p.py:train", *QUICK)


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(PROBLEM)
    return tmp_path


def test_labels_make_a_router_that_certifies(dualrs, problem):
    code, out, err = dualrs(*LABEL)
    assert code == 0, err
    assert "240 inputs, and 0 dropped" in out
    code, out, err = dualrs(*ROUTER)
    assert code == 0, err
    card = json.loads((problem / "r.json").read_text())
    assert card["scores"]["greys, held out best sigma found"] == 1.0
    assert card["architecture"]["arguments"]["classes"] == 2
    assert (card["sigmas"], card["sigma_e"]) == ([0.25, 0.5], 0.5)
    code, out, err = dualrs(
        "certify", "-o", "run.ledger", "--router", "r.safetensors", "--classifier", "p.py:classifier", *SIGMAS,
        "--sigma-e", "0.5", "--data", "p.py:test", "--n", "200", "--alpha", "0.05",
    )  # fmt: skip
    assert code == 0, err
    assert "│ 100.0 │" in out
    assert "0.25" in out
    assert "0.5 " in out


def test_classifier_is_fine_tuned_at_the_sigmas_that_the_router_assigns(dualrs, problem):
    dualrs(*LABEL)
    dualrs(*ROUTER)
    short = ("--data", "p.py:train", "--test", "p.py:test", "--epochs", "1", "--batch-size", "32")
    small = ("--network-args", '{"widths": [8], "blocks": [1]}', "--sigma", "0.25,0.5")
    code, _, err = dualrs("train", "classifier", "c.safetensors", *short, *small)
    assert code == 0, err
    code, _, err = dualrs(
        "assign", "-o", "a.ledger", "--router", "r.safetensors", *SIGMAS, "--sigma-e", "0.5", "--data", "p.py:train",
        "--n", "40",
    )  # fmt: skip
    assert code == 0, err
    tune = ("train", "classifier", "t.safetensors", "--from", "c.safetensors", "--sigma-from", "a.ledger", *short)
    code, _, err = dualrs(*tune)
    assert code == 0, err
    cards = [json.loads((problem / f"{name}.json").read_text()) for name in "ct"]
    assert cards[0]["architecture"] == cards[1]["architecture"]
    assert cards[1]["what"].endswith("a sigma per image")
    assert set(cards[1]["scores"]) == {f"greys accuracy sigma={s}" for s in ("0.25", "0.5")}
    weights = (problem / "t.safetensors").read_bytes()
    assert weights != (problem / "c.safetensors").read_bytes()
    (problem / "a.ledger").rename(problem / "b.ledger")
    code, _, err = dualrs(*tune)
    assert code == 2
    assert "a.ledger" in err
    code, _, err = dualrs(*tune[:6], "b.ledger", *tune[7:])  # the same training, from a file of another name
    assert code == 0, err
    assert weights == (problem / "t.safetensors").read_bytes()


@pytest.mark.parametrize("key", RouterSection.model_fields)
def test_option_has_the_name_and_the_default_of_the_key_of_a_recipe(key):
    options = {option.name: option for option in get_command(train_app).commands["router"].params}
    assert f"--{key.replace('_', '-')}" in options[key].opts
    default = options[key].default
    assert (json.loads(default) if key in ("network_args", "method_args") else default) == RouterSection.model_fields[
        key
    ].default


def test_labels_of_other_data_are_refused(dualrs, problem):
    dualrs(*LABEL)
    code, _, err = dualrs(*ROUTER[:5], "--data", "p.py:other", *QUICK)
    assert code == 2
    assert "is another dataset" in err


def test_ledger_of_certificates_is_no_ledger_of_labels(dualrs, problem):
    dualrs(
        "certify", "-o", "labels.ledger", "--classifier", "p.py:classifier", "--sigma", "0.25", "--data", "p.py:train",
        "--inputs", "0:3", "--n", "200", "--alpha", "0.05",
    )  # fmt: skip
    code, _, err = dualrs(*ROUTER)
    assert code == 2
    assert "holds certificates under rule cohen, not labels" in err


def test_too_few_labels_are_refused(dualrs, problem):
    dualrs(*LABEL, "--inputs", "0:10")
    code, _, err = dualrs(*ROUTER)
    assert code == 2
    assert "too few to train on" in err
