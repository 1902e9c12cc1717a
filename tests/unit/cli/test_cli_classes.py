"""Classes by name through the commands: a network with names on class folders that sort otherwise."""

import csv

import numpy as np
import pytest

PIL = pytest.importorskip("PIL.Image")

GREY = {"owl": 20, "cat": 128, "dog": 235}
NETWORK = '''
import torch
from torch import nn


class Named(nn.Module):
    """Answers by the mean of the image; its classes are in another order than folders are."""

    classes = ("owl", "dog", "cat")

    def __init__(self, levels=(20, 235, 128)):
        super().__init__()
        self.levels = nn.Parameter(torch.tensor(levels) / 255)

    def forward(self, x):
        return -(x.mean(dim=(1, 2, 3))[:, None] - self.levels).abs()


named = Named().eval()
other = Named((20, 128, 235)).eval()
other.classes = ("owl", "cat", "dog")
unnamed = Named().eval()
unnamed.classes = None
'''
SAMPLE = ("--sigma", "0.1", "--n", "100", "--n0", "10", "--alpha", "0.01", "--seed", "0")


@pytest.fixture(autouse=True)
def animals(tmp_path):
    (tmp_path / "named.py").write_text(NETWORK)
    return pictures(tmp_path / "animals", GREY)


@pytest.fixture
def run(dualrs):
    def good(*words):
        code, out, err = dualrs(*words)
        assert code == 0, err
        return out

    return good


@pytest.fixture
def refused(dualrs):
    def bad(*words):
        code, _, err = dualrs(*words)
        assert code == 2, err
        assert "Traceback" not in err
        return err

    return bad


def pictures(root, classes, each=2):
    for name, grey in classes.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for k in range(each):
            PIL.fromarray(np.full((4, 4, 3), grey + k, np.uint8)).save(root / name / f"{k}.png")
    return root


def test_certify_counts_and_names_the_right_class(run):
    run("certify", "--classifier", "named.py:named", "--data", "folder:animals", *SAMPLE, "-o", "run.ledger")
    run("export", "run.ledger", "run.csv")
    with open("run.csv", newline="") as file:
        assert [row["correct"] for row in csv.DictReader(file)] == ["1"] * 6
    said = run("why", "run.ledger", "cat/0.png")
    assert "cat/0.png · cat within L2 radius" in said
    assert "label: cat" in said
    assert "class 2" not in said
    drawn = run("why", "run.ledger", "cat/0.png", "-o", "why.png", "--data", "folder:animals")
    assert "label: cat" in drawn


def test_transformers_tell_their_names(run, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4,
        id2label=dict(enumerate(("owl", "dog", "cat"))),
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    transformers.ViTImageProcessorPil(size={"height": 8, "width": 8}).save_pretrained(tmp_path / "vit")
    run("certify", "--classifier", "transformers:vit", "--data", "folder:animals", *SAMPLE, "-o", "run.ledger")
    for animal in GREY:
        assert f"label: {animal}" in run("why", "run.ledger", f"{animal}/0.png")


def test_predict_and_evaluate_count_the_right_class(run):
    found = run("predict", "--classifier", "named.py:named", "--data", "folder:animals", *SAMPLE[:2], "--n", "100")
    assert "6 right" in found
    assert "100.00%" in run("evaluate", "named.py:named", "--data", "folder:animals", "--sigma", "0.05")


def test_labels_and_training_use_the_right_class(run, tmp_path):
    pictures(tmp_path / "animals", GREY, each=12)
    networks = ("--classifier", "named.py:named", "--sigmas", "0.1,0.2", "--data", "folder:animals")
    shown = run("label", *networks, "--n", "50", "-o", "labels.ledger")
    assert "36 inputs, and 0 dropped" in shown
    train = ("--data", "folder:animals", "--network-args", '{"widths": [4], "blocks": [0]}', "--epochs", "1")
    train += ("--batch-size", "8")
    run("train", "router", "router.safetensors", "--labels", "labels.ledger", *train, "--sigma-e", "0.2")


def test_what_was_trained_knows_its_classes(run, tmp_path):
    pictures(tmp_path / "test", {"dog": 235, "owl": 20})  # without a cat
    train = ("--data", "folder:animals", "--test", "folder:test", "--network-args", '{"widths": [4], "blocks": [0]}')
    run("train", "classifier", "net.safetensors", *train, "--epochs", "1", "--batch-size", "6", "--sigma", "0.1")
    run("certify", "--classifier", "net.safetensors", "--data", "folder:test", *SAMPLE, "-o", "run.ledger")
    assert "label: owl" in run("why", "run.ledger", "owl/0.png")


def test_other_classes_to_test_on_are_refused_before_training(refused, tmp_path):
    pictures(tmp_path / "test", {"dog": 235, "fox": 20, "owl": 30})
    said = refused("train", "classifier", "net.safetensors", "--data", "folder:animals", "--test", "folder:test")
    assert "it knows no fox" in said
    assert not list(tmp_path.glob("net.s*"))


def test_experts_that_number_differently_are_refused(refused):
    experts = ("--expert", "0.1=named.py:named", "--expert", "0.2=named.py:other", "--sigmas", "0.1,0.2")
    said = refused("certify", *experts, "--data", "folder:animals", "-o", "run.ledger")
    assert "number their classes differently: class 1 is cat for one and dog for another" in said


@pytest.mark.parametrize("command", ["certify", "predict", "evaluate", "label"])
def test_what_does_not_fit_is_refused(command, refused, tmp_path):
    pictures(tmp_path / "five", dict.fromkeys("abcde", 100))
    pictures(tmp_path / "two", {"cat": 100, "dog": 200})
    for network, data, words in (
        ("named.py:named", "five", "do not fit those of the network"),
        ("named.py:unnamed", "five", "has the label 4"),
        ("named.py:unnamed", "two", "their numbers cannot be told"),
    ):
        named = (network, "--sigma", "0.1") if command == "evaluate" else ("--classifier", network)
        named += () if command == "evaluate" else ("--sigmas", "0.1,0.2") if command == "label" else ("--sigma", "0.1")
        kept = () if command in ("predict", "evaluate") else ("-o", "run.ledger")
        assert words in refused(command, *named, "--data", f"folder:{data}", *kept)
        assert not (tmp_path / "run.ledger").exists()


def test_the_folder_above_the_parts_is_refused(refused, tmp_path):
    for part in ("train", "Val"):
        pictures(tmp_path / "root" / part, GREY)
    said = refused("certify", "--classifier", "named.py:named", *SAMPLE, "--data", "folder:root", "-o", "run.ledger")
    assert "are parts of a dataset (Val, train)" in said
    assert "root/train" in said
