"""Training and measuring from the command line."""

import json
import re

import pytest

from dualrs.models.architectures import build, complete
from dualrs.models.card import Architecture
from dualrs.training.methods import METHODS

NET = """
import numpy as np
from torch import nn
from dualrs.data.dataset import ArrayDataset

def images(count, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    colour = np.where(labels[:, None], 200, 50) + generator.integers(-20, 20, (count, 3))
    pixels = np.broadcast_to(colour[:, :, None, None], (count, 3, 16, 16)).astype(np.uint8)
    return ArrayDataset(pixels, labels, name="colours")

def train():
    return images(128, 0)

def test():
    return images(60, 1)

grey = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())

class Drawing(nn.Module):
    def forward(self, x, randomness):
        return x

drawing = Drawing()

def bare():
    return images(60, 1).pixels
"""
QUICK = ("--data", "colours.py:train", "--test", "colours.py:test", "--epochs", "3", "--batch-size", "32")
UNET = ("--network-args", '{"width": 8, "middle": 1}')
RESNET = ("--network-args", '{"widths": [8], "blocks": [1]}')


@pytest.fixture
def colours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "colours.py").write_text(NET)
    return tmp_path


def test_denoiser_then_classifier_then_their_accuracy(dualrs, colours):
    code, out, err = dualrs("train", "denoiser", "d.safetensors", *QUICK, *UNET, "--rate", "0.005")
    assert code == 0, err
    assert "wrote d.safetensors (lean-unet(width=8, middle=1);" in out
    code, out, err = dualrs("train", "classifier", "c.safetensors", "--denoiser", "d.safetensors", *QUICK, *RESNET)
    assert code == 0, err
    assert "colours accuracy sigma=0.5" in out
    card = json.loads((colours / "c.safetensors").with_suffix(".json").read_text())
    assert "classifier" in card["recipe"]
    code, out, err = dualrs(
        "evaluate", "d.safetensors | c.safetensors", "--data", "colours.py:test", "--sigma", "0,0.5"
    )
    assert code == 0, err
    assert f"{100 * card['scores']['colours accuracy sigma=0.5']:.2f}%" in out
    code, out, err = dualrs(
        "certify", "--classifier", "d.safetensors | c.safetensors", "--sigma", "0.5", "--data", "colours.py:test",
        "--inputs", "0:3", "--n", "200", "--alpha", "0.05", "-o", "run.ledger",
    )  # fmt: skip
    assert code == 0, err
    assert "certified accuracy" in out


def test_quantise_then_certify(dualrs, colours):
    words = ("--data", "colours.py:train", "--test", "colours.py:test")
    assert dualrs("train", "classifier", "c.safetensors", "--sigma", "0.5", *QUICK, *RESNET)[0] == 0
    code, out, err = dualrs("quantise", "c.safetensors", "e.safetensors", *words, "--images", "60", "--sigma", "0.5")
    assert code == 0, err
    assert "colours same answer sigma=0.5:" in out
    assert "wrote e.safetensors" in out
    code, out, err = dualrs(
        "certify", "--classifier", "e.safetensors", "--sigma", "0.5", "--data", "colours.py:test",
        "--inputs", "0:3", "--n", "200", "--alpha", "0.05", "-o", "run.ledger",
    )  # fmt: skip
    assert code == 0, err
    again = ("--classifier", "e.safetensors", "--data", "colours.py:test")
    code, out, err = dualrs("verify", "run.ledger", "--redraw", "3", *again)
    assert code == 0, err
    assert "came out the same" in out
    for odd, sentence in {
        ("c.safetensors", "f.safetensors", *words, "--images", "61"): "colours has 60 images; got 61",
        ("colours.py:grey", "f.safetensors", *words, "--images", "6"): "lean-resnet has a form in eight bits",
        ("c.safetensors", "f.pt", *words, "--images", "6"): "end in .safetensors",
        ("c.safetensors", "e.safetensors", *words, "--images", "6"): "e.safetensors is there already",
        ("c.safetensors", "f.safetensors", *words, "--sigma", "a"): "sigmas are numbers",
    }.items():
        code, _, err = dualrs("quantise", *odd)
        assert (code, sentence in err) == (2, True), err


def test_same_command_after_the_end_writes_the_same_weights(dualrs, colours):
    words = ("train", "classifier", "c.safetensors", *QUICK, *RESNET, "--sigma", "0.25")
    dualrs(*words)
    first = (colours / "c.safetensors").read_bytes()
    code, _, err = dualrs(*words)
    assert code == 0, err
    assert (colours / "c.safetensors").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--sigma", "big"), "sigmas are numbers", id="sigma that is no number"),
        pytest.param(("--network-args", "{"), "--network-args is not JSON", id="arguments that are not JSON"),
        pytest.param(("--network-args", "[1]"), "--network-args takes a JSON object", id="arguments that are a list"),
        pytest.param(("--network", "alexnet"), "no network 'alexnet'", id="unknown network"),
        pytest.param(("--denoiser", "zoo:elephant"), "the zoo has no network", id="unknown denoiser"),
        pytest.param(("--data", "cifar10:half"), "there is no cifar10:half", id="unknown data"),
        pytest.param(("--device", "abacus"), "unknown device", id="unknown device"),
        pytest.param(("--dtype", "int8"), "unknown dtype", id="unknown dtype"),
        pytest.param(("--epochs", "0"), "classifier.epochs: Input should be greater than", id="no epochs"),
        pytest.param(("--rate", "0"), "classifier.rate: Input should be greater than 0", id="no learning rate"),
        pytest.param(
            ("--denoiser", "zoo:cifar10-denoiser", "--from", "zoo:cifar10-denoiser | zoo:cifar10-classifier"),
            "neither one network nor DENOISER",
            id="two denoisers",
        ),
        pytest.param(("--batch-size", "1000"), "do not fill one batch", id="batch larger than the data"),
    ],
)
def test_train_classifier_refuses(dualrs, colours, words, sentence):
    code, _, err = dualrs("train", "classifier", "c.safetensors", *QUICK, *RESNET, *words)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
    assert not (colours / "c.safetensors").exists()


def test_other_settings_do_not_touch_a_training_that_was_begun(dualrs, colours):
    dualrs("train", "classifier", "c.safetensors", *QUICK, *RESNET)
    code, _, err = dualrs("train", "classifier", "c.safetensors", *QUICK, *RESNET, "--seed", "5")
    assert code == 2
    assert "belongs to another training" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--sigma", "-1"), "none negative", id="negative sigma"),
        pytest.param(("--data", "colours.py:bare"), "no labels to compare with", id="no labels"),
        pytest.param(("--sigma", "0"), "NaN or infinity at sigma 0", id="network that cannot be told zero"),
    ],
)
def test_evaluate_refuses(dualrs, colours, words, sentence):
    code, _, err = dualrs("evaluate", "zoo:cifar10-experts", "--data", "colours.py:test", *words)
    assert code == 2
    assert sentence in err


def test_models_are_listed_with_their_cards(dualrs):
    code, out, _ = dualrs("models")
    assert code == 0
    assert "zoo:cifar10-denoiser" in out
    assert "module:attribute" in out
    code, out, _ = dualrs("models", "cifar10-denoiser")
    assert code == 0
    assert "sha256" in out
    code, _, err = dualrs("models", "elephant")
    assert code == 2
    assert "the zoo has no network 'elephant'" in err


@pytest.mark.parametrize(
    ("command", "network"), [("denoiser", "lean-unet"), ("classifier", "lean-resnet"), ("router", "lean-resnet")]
)
def test_the_example_in_the_help_can_be_built(dualrs, command, network, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    _, out, _ = dualrs("train", command, "--help")
    (example,) = re.findall(r"such as '(\{.*?\})'", out)
    classes = {} if command == "denoiser" else {"classes": 10}
    build(complete(Architecture(network=network, arguments=classes | json.loads(example))))


def test_a_training_that_is_done_is_not_said_to_be_written_and_has_no_licence_of_ours(dualrs, colours):
    words = ("train", "classifier", "c.safetensors", *QUICK, *RESNET)
    _, first, _ = dualrs(*words)
    assert first.startswith("wrote c.safetensors")
    _, again, _ = dualrs(*words)
    assert again == first.replace("wrote", "this training is done already:")
    assert json.loads((colours / "c.json").read_text())["licence"] == "not stated"


def test_an_unknown_argument_of_a_network_is_answered_with_those_there_are(dualrs, colours):
    code, _, err = dualrs("train", "classifier", "net.safetensors", *QUICK, "--network-args", '{"width": 32}')
    assert code == 2
    assert "unexpected keyword argument 'width'; the arguments of lean-resnet are classes, widths=(" in err


# The field's methods

TINY = {
    "smoothadv": '{"copies": 2, "steps": 1}',
    "macer": '{"copies": 2}',
    "smoothmix": '{"steps": 1}',
    "cat-rs": '{"copies": 2, "steps": 1, "teacher_votes": 4}',
    "easy-focus": '{"copies": 2, "steps": 1, "start": 1, "hopeless": 0.0}',
}
ONE_EPOCH = ("--epochs", "2", "--batch-size", "64", "--sigma", "0.5")


@pytest.mark.parametrize("method", METHODS)
def test_classifier_is_trained_by_any_method(dualrs, colours, method):
    words = ("--method", method, "--method-args", TINY.get(method, "{}"))
    if method == "cat-rs":
        assert dualrs("train", "classifier", "teacher.safetensors", *QUICK, *RESNET, "--epochs", "1")[0] == 0
        words += ("--teacher", "teacher.safetensors")
    code, out, err = dualrs("train", "classifier", "c.safetensors", *QUICK, *RESNET, *ONE_EPOCH, *words)
    assert code == 0, err
    assert "colours accuracy sigma=0.5" in out
    said = json.loads((colours / "c.json").read_text())["training"]
    assert ("method" in said) == (method != "gaussian")


def test_help_names_every_method(dualrs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    for command in ("classifier", "router"):
        _, out, _ = dualrs("train", command, "--help")
        (line,) = [line for line in out.splitlines() if re.match(r"│ +--method ", line)]
        for name in METHODS:
            assert (name in line) == (command == "classifier" or name != "easy-focus")


RECIPE = """
title = "colours"
data = "colours.py:train"
test = "colours.py:test"
[classifier]
network_args = {widths = [8], blocks = [1]}
sigma = "0.5"
method = "macer"
method_args = {copies = 4}
epochs = 1
batch_size = 64
optimizer = "sgd"
drop_at = [1]
"""


def test_recipe_of_a_classifier_is_trained_and_options_win_over_it(dualrs, colours, tmp_path):
    (colours / "mine.toml").write_text(RECIPE)
    for words, said in (
        ((), ("method Macer(copies=4", "'rate': 0.1", "'weight_decay': 0.0001", "'optimizer': 'sgd'", "(1,)")),
        (
            ("--method", "consistency", "--method-args", "{}", "--seed", "3"),
            ("method Consistency(copies=2", "'seed': 3"),
        ),
        (("--optimizer", "adamw", "--drop-at", "2,4"), ("'rate': 0.003", "'drop_at': (2, 4)")),
    ):
        for left in colours.glob("c.*"):
            left.unlink()
        code, _, err = dualrs("train", "classifier", "c.safetensors", "--recipe", "mine.toml", *words)
        assert code == 0, err
        training = json.loads((colours / "c.json").read_text())["training"]
        assert all(part in training for part in said), training


def test_recipe_of_a_classifier_is_checked_and_refused_by_certify(dualrs, colours):
    (colours / "mine.toml").write_text(RECIPE)
    code, out, err = dualrs("recipe", "check", "mine.toml")
    assert code == 0, err
    assert re.search(r"weights .* 128 .* 4 .* 512 ", out)
    code, _, err = dualrs("certify", "mine.toml")
    assert code == 2
    assert "trains a classifier: run `dualrs train classifier OUT.safetensors --recipe" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--method", "smoothad"), "no training method 'smoothad'"),
        (("--method", "macer", "--method-args", '{"lambda": 1}'), "macer has no setting 'lambda'; it has copies=16"),
        (("--method", "macer", "--method-args", "[1]"), "--method-args takes a JSON object"),
        (("--method", "macer", "--batch-size", "24"), "24 noisy images cannot be made of 16 copies"),
        (("--method", "cat-rs"), "cat-rs needs a teacher"),
        (("--method", "cat-rs", "--teacher", "colours.py:grey"), "the teacher fails on images of 3 x 16 x 16"),
        (("--method", "cat-rs", "--teacher", "colours.py:drawing"), "draws numbers of its own"),
        (("--method", "macer", "--teacher", "zoo:cifar10-classifier"), "macer has no teacher"),
        (("--optimizer", "adam"), "classifier.optimizer: Input should be 'adamw' or 'sgd'"),
        (("--drop-at", "1.5"), "--drop-at takes whole epochs"),
    ],
)
def test_train_by_a_method_refuses(dualrs, colours, words, sentence):
    code, _, err = dualrs("train", "classifier", "c.safetensors", *QUICK, *RESNET, "--sigma", "0.5", *words)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert not (colours / "c.safetensors").exists()
