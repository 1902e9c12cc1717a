"""Models given away: to a folder and to a stand-in hub, and got back as they were; no code is read."""

import hashlib

import numpy as np
import pytest
import torch
from stand_in import hub  # noqa: F401
from torch import nn

import dualrs
from dualrs import Cascade, DualSmoothed, Smoothed
from dualrs.errors import BadCheckpoint, BadModel, BadSetting, ForeignLedger, Unreachable
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.weights import save_weights

yaml = pytest.importorskip("yaml")
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 3, 16, 16), dtype=np.uint8)


SMALL = {"widths": [8], "blocks": [1]}
NETWORKS = {
    "d": Architecture(network="lean-unet", arguments={"width": 8, "middle": 1}),
    "c": Architecture(network="lean-resnet", arguments={"classes": 3, **SMALL}),
    "r": Architecture(network="lean-resnet", arguments={"classes": 2, **SMALL}),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of weights, from which one works, with code that must not be run."""
    for seed, (name, architecture) in enumerate(NETWORKS.items()):
        torch.manual_seed(seed)
        card = Card(what="", architecture=architecture, data="", recipe="", seed=0, cost="", scores={}, licence="")
        save_weights(build(architecture), card, tmp_path / f"{name}.safetensors")
    (tmp_path / "net.py").write_text("raise SystemExit('code was run')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cascade():
    return Cascade(dualrs.load("d.safetensors | c.safetensors"), (0.25, 0.5))


def dual():
    router, classifier = dualrs.load("d.safetensors | r.safetensors"), dualrs.load("c.safetensors")
    return DualSmoothed(router, {0.25: classifier, 0.5: dualrs.load("d.safetensors | c.safetensors")}, (0.25, 0.5), 0.5)


def votes(model):
    return list(model.certify(IMAGES, n=200, n0=20, alpha=0.05, seed=3))


@pytest.mark.parametrize("make", [cascade, dual])
def test_a_folder_gives_the_model_back(folder, make):
    model = make()
    model.save_pretrained("given", licence="mit")
    names = {path.name for path in (folder / "given").iterdir()}
    assert {path.rpartition(".")[2] for path in names} == {"toml", "safetensors", "json", "md"}
    (folder / "given").rename(folder / "moved")
    for file in folder.glob("*.safetensors"):
        file.unlink()
    again = type(model).from_pretrained(folder / "moved")
    assert votes(again) == votes(model)
    assert again.kind == model.kind
    again.save_pretrained("twice", licence="mit")  # what was got can be given on
    assert votes(type(model).from_pretrained("twice")) == votes(model)


def test_a_bundle_is_saved_without_what_is_at_home_with_its_maker(folder):
    cascade().save_pretrained("given", licence="mit")
    text = (folder / "given" / "bundle.toml").read_text()
    (folder / "given" / "bundle.toml").write_text(
        f'data = "net.py:data"\n{text}'.replace("[engine]", '[engine]\ndevice = "cpu"')
    )
    dualrs.save_pretrained(folder / "given", folder / "again", licence="mit")
    assert (folder / "again" / "bundle.toml").read_text() == text


@pytest.mark.parametrize("make", [cascade, dual])
def test_a_hub_gives_the_model_back(folder, hub, make):  # noqa: F811
    model = make()
    assert model.push_to_hub("me/small", licence="mit", private=True) == f"{hub.endpoint}/me/small"
    assert hub.private == {"me/small": True}
    hub.files["me/small"]["evil.py"] = b"raise SystemExit('code was run')"
    assert votes(type(model).from_pretrained("me/small")) == votes(model)
    assert "evil.py" not in hub.fetched
    assert "bundle.toml" in hub.fetched


def test_the_card_says_what_is_certified_by_which_votes(folder, hub):  # noqa: F811
    model = cascade()
    data = dualrs.data.dataset.ArrayDataset(IMAGES, [0, 1, 2, 0], name="four images")
    dualrs.certify_dataset(model, data, "run.ledger", n=300, n0=30, alpha=0.01, seed=5)
    model.push_to_hub("me/small", licence="cc-by-4.0", ledgers=["run.ledger"])
    _, front, text = hub.files["me/small"]["README.md"].decode().split("---\n", 2)
    assert yaml.safe_load(front) == {
        "license": "cc-by-4.0",
        "library_name": "dualrs",
        "pipeline_tag": "image-classification",
        "tags": ["certified-robustness", "randomized-smoothing"],
    }
    assert 'Cascade.from_pretrained("me/small")' in text
    assert "smoothed at sigma 0.25, 0.5:" in text
    assert "four images, 4 inputs" in text
    assert "Rule cascade, alpha\n0.01, n 300 · n0 30, seed 5. Guarantee: " in text
    assert hashlib.sha256((folder / "run.ledger").read_bytes()).hexdigest() in text
    with pytest.raises(ForeignLedger, match=r"run.ledger is not a run of this model"):
        dual().push_to_hub("me/other", licence="mit", ledgers=["run.ledger"])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(
            lambda: Cascade(nn.Flatten().eval(), (0.25, 0.5)), "the classifier is a Flatten made in", id="Python"
        ),
        pytest.param(lambda: Smoothed(dualrs.load("c.safetensors"), 0.5), "a Smoothed is not pushed", id="one sigma"),
    ],
)
def test_what_weights_alone_cannot_make_is_not_saved(folder, make, sentence):
    with pytest.raises(BadModel, match=sentence):
        dualrs.save_pretrained(make(), folder / "given", licence="mit")
    assert not (folder / "given").exists()


def test_a_network_of_code_is_not_saved(folder):
    (folder / "mine.py").write_text("from torch import nn\nnetwork = nn.Flatten().eval()\n")
    with pytest.raises(BadModel, match=r"made of weights that dualrs saved, and .*mine.py:network cannot go into it"):
        Cascade(dualrs.load("mine.py:network"), (0.25, 0.5)).save_pretrained("given", licence="mit")


@pytest.mark.parametrize(
    ("classifier", "sentence"),
    [
        ("net.py:network", "net.py:network is not read by from_pretrained"),
        ("net.py:network < classifier.safetensors", "is not read by from_pretrained"),
        ("net.py:network | classifier.safetensors", "net.py:network is not read by from_pretrained"),
        ("../c.safetensors", "names weights outside of it"),
        ("openai:model.pt | classifier.safetensors", "openai:.*model.pt is not read by from_pretrained"),
    ],
)
def test_a_bundle_that_names_more_than_its_weights_is_not_loaded(folder, classifier, sentence):
    cascade().save_pretrained("given", licence="mit")
    (folder / "given" / "net.py").write_text("raise SystemExit('code was run')")
    text = (folder / "given" / "bundle.toml").read_text()
    (folder / "given" / "bundle.toml").write_text(
        text.replace('"denoiser.safetensors | classifier.safetensors"', f'"{classifier}"')
    )
    with pytest.raises(BadModel, match=sentence):
        Cascade.from_pretrained("given")


def test_an_altered_file_is_not_loaded(folder):
    cascade().save_pretrained("given", licence="mit")
    file = folder / "given" / "classifier.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(BadCheckpoint, match="is not the file that its card describes"):
        Cascade.from_pretrained("given")


def test_a_pickle_in_place_of_weights_is_not_loaded(folder):
    cascade().save_pretrained("given", licence="mit")
    torch.save({"x": torch.zeros(1)}, folder / "given" / "classifier.safetensors")
    with pytest.raises(BadCheckpoint):
        Cascade.from_pretrained("given")


def test_the_kind_has_to_be_that_of_the_bundle(folder):
    cascade().save_pretrained("given", licence="mit")
    with pytest.raises(BadModel, match=r"given is a Cascade, not a DualSmoothed; call Cascade.from_pretrained"):
        DualSmoothed.from_pretrained("given")


@pytest.mark.parametrize("licence", ["", " ", "mit\nevil: true"])
def test_a_licence_is_said(folder, licence):
    with pytest.raises(BadSetting, match="under which licence"):
        cascade().save_pretrained("given", licence=licence)


def test_what_the_hub_does_not_have_is_said_in_a_sentence(folder, hub):  # noqa: F811
    with pytest.raises(Unreachable, match="cannot get me/none from the hub"):
        Cascade.from_pretrained("me/none")
    hub.files["me/other"] = {"README.md": b"nothing"}
    with pytest.raises(BadCheckpoint, match=r"me/other is no model of dualrs: it has no bundle.toml"):
        Cascade.from_pretrained("me/other")
    with pytest.raises(Unreachable, match="cannot push a/b/c to the hub"):
        cascade().push_to_hub("a/b/c", licence="mit")


def test_the_command_pushes_a_bundle(folder, hub, monkeypatch, capsys):  # noqa: F811
    from dualrs.cli import main

    cascade().save_pretrained("given", licence="mit")
    words = ("dualrs", "models", "push", "given", "me/small", "--licence", "mit")
    monkeypatch.setattr("sys.argv", list(words))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)
    assert capsys.readouterr().out == f"pushed given to {hub.endpoint}/me/small\n"
    assert votes(Cascade.from_pretrained("me/small")) == votes(cascade())
