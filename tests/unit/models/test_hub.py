"""Classifiers of the hub: the processor's preparation, the network's answers, and no bad folder is taken."""

import hashlib
import json
import pickle
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from dualrs.errors import BadCheckpoint, BadImage, BadModel, Unreachable
from dualrs.models.hub import HubClassifier, load_classifier
from dualrs.models.noisy import NoisyModel, fingerprint
from dualrs.models.prepare import Preparation

transformers = pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image")

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "num_labels": 5}
SQUARE = {"height": 32, "width": 32}


def vit(**changes):
    config = transformers.ViTConfig(**{**SMALL, "image_size": 32, "patch_size": 8, **changes})
    return transformers.ViTForImageClassification(config)


def beit():
    config = transformers.BeitConfig(**SMALL, image_size=32, patch_size=8, use_relative_position_bias=True)
    return transformers.BeitForImageClassification(config)


def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5)
    return transformers.ResNetForImageClassification(config)


def vit_processor(**changes):
    return transformers.ViTImageProcessorPil(**{"size": SQUARE, **changes})


def saved(folder, network, processor):
    torch.manual_seed(0)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def photographs():
    """Two photographs, 8-bit, at half contrast: Pillow clips what a cubic overshoots, and noisy images must not be."""
    pictures = pytest.importorskip("sklearn.datasets").load_sample_images().images
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) // 2 + 64


@pytest.fixture
def good(tmp_path):
    """A folder with a small ViT, to be damaged."""
    return saved(tmp_path / "vit", vit(), vit_processor())


# The preparation is the processor's

PROCESSORS = {
    "ViT": lambda: vit_processor(),
    "ViT, warped": lambda: vit_processor(size={"height": 40, "width": 24}),
    "ViT by cubic": lambda: vit_processor(resample=3),
    "no resize": lambda: vit_processor(do_resize=False, resample=None),
    "no rescale": lambda: vit_processor(do_rescale=False, image_mean=[120, 121, 122], image_std=[60, 61, 62]),
    "another scale": lambda: vit_processor(rescale_factor=1 / 127.5, image_mean=1, image_std=1),
    "no normalise": lambda: vit_processor(do_normalize=False),
    "BEiT": lambda: transformers.BeitImageProcessorPil(size=SQUARE),
    "BEiT, cropped": lambda: transformers.BeitImageProcessorPil(
        size={"height": 37, "width": 40}, do_center_crop=True, crop_size=SQUARE
    ),
    "DeiT": lambda: transformers.DeiTImageProcessorPil(size={"height": 36, "width": 36}, crop_size=SQUARE),
    "shorter edge": lambda: transformers.BitImageProcessorPil(size={"shortest_edge": 37}, crop_size=SQUARE),
    "crop with a black frame": lambda: transformers.BitImageProcessorPil(size={"shortest_edge": 25}, crop_size=SQUARE),
    "ConvNeXt, cropped": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.9),
    "PoolFormer": lambda: transformers.PoolFormerImageProcessorPil(size={"shortest_edge": 32}, crop_size=SQUARE),
    "ConvNeXt, warped": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 384}),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_preparation_is_that_of_the_processor(tmp_path, photographs, name):
    """Within 1.25 levels of 255: the processor rounds to 8 bits after each of two passes, we do not."""
    processor = PROCESSORS[name]()
    prepare = load_classifier(saved(tmp_path, resnet(), processor)).prepare
    for part in (photographs, photographs[:, :, 99:131, 200:232], photographs[:, :, 50:113, 9:78]):
        theirs = processor(list(part), return_tensors="pt")["pixel_values"]
        ours = prepare(part / 255)
        assert ours.shape == theirs.shape
        assert ((ours - theirs).abs() * prepare.std).max() < 1.25 / 255


@pytest.mark.parametrize("size", [(32, 32), (224, 224), (100, 77)], ids=str)
@pytest.mark.parametrize(("resampling", "number"), [("bilinear", 2), ("bicubic", 3)])
def test_resize_is_that_of_pillow_on_float_images(photographs, resampling, number, size):
    """Pillow has a float mode, which neither rounds nor clips; it computes in float64, as we do here."""
    prepare = Preparation([0.0], [1.0], size=size, resampling=resampling)
    for part in (photographs[0, 0, 99:131, 200:232], photographs[1, 1, :, :300]):
        noisy = part / 255 + torch.randn(part.shape, generator=torch.Generator().manual_seed(0))
        theirs = np.asarray(Image.fromarray(noisy.numpy()).resize(size[::-1], resample=number))
        ours = prepare(noisy.double()[None, None])[0, 0].numpy()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)  # Pillow keeps its results in float32


def test_preparation_never_clips_and_lets_gradients_through():
    """It is affine: far outside of [0, 1] as inside."""
    prepare = Preparation([0.5], [0.25], size=20, crop=(18, 18), resampling="bicubic")
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randn(1, 1, 8, 9, generator=generator) * 5 for _ in range(2))
    constant = prepare(torch.zeros(1, 1, 8, 9))
    torch.testing.assert_close(prepare(one + other) + constant, prepare(one) + prepare(other), rtol=0, atol=2e-4)
    one.requires_grad_()
    prepare(one).sum().backward()
    assert (one.grad[0, 0, 2:-2, 3:-3] > 0).all()


@pytest.mark.parametrize(
    "processor",
    [
        pytest.param(lambda: vit_processor(resample=0), id="nearest"),
        pytest.param(lambda: vit_processor(resample=1), id="lanczos"),
        pytest.param(lambda: vit_processor(size={"longest_edge": 32}), id="longest edge"),
        pytest.param(lambda: vit_processor(do_pad=True, pad_size={"height": 50, "width": 50}), id="padding"),
        pytest.param(lambda: transformers.EfficientNetImageProcessorPil(), id="EfficientNet normalises twice"),
        pytest.param(lambda: transformers.MobileViTImageProcessorPil(), id="MobileViT flips the colours"),
        pytest.param(lambda: transformers.LevitImageProcessorPil(), id="LeViT scales its size"),
        pytest.param(
            lambda: transformers.PoolFormerImageProcessorPil(
                size={"shortest_edge": 384}, crop_size={"height": 384, "width": 384}
            ),
            id="PoolFormer crops where ConvNeXt warps",
        ),
        pytest.param(lambda: vit_processor(image_mean=[0.5] * 4, image_std=[0.5] * 4), id="four channels"),
    ],
)
def test_processor_that_does_something_else_is_refused(tmp_path, processor):
    folder = saved(tmp_path, resnet(), processor())
    with pytest.raises(BadModel, match=r"does not fit into a module.*wrap it in a module of your own"):
        load_classifier(folder)


# The answers are the network's


@pytest.mark.parametrize(
    ("network", "processor"),
    [
        pytest.param(vit, vit_processor, id="ViT"),
        pytest.param(beit, PROCESSORS["BEiT, cropped"], id="BEiT"),
        pytest.param(resnet, PROCESSORS["ConvNeXt, cropped"], id="ResNet"),
    ],
)
def test_logits_are_those_of_transformers(tmp_path, network, processor):
    theirs = network().eval()
    model = load_classifier(str(saved(tmp_path, theirs, processor())))
    noisy = torch.rand(3, 3, 24, 24) + torch.randn(3, 3, 24, 24)
    with torch.no_grad():
        logits = NoisyModel("classifier", model)(noisy, 1.0)
        torch.testing.assert_close(logits, theirs(model.prepare(noisy)).logits)
    assert logits.shape == (3, 5)


def test_half_precision_weights_are_computed_in_float32(tmp_path):
    folder = saved(tmp_path, vit().half(), vit_processor())
    model = load_classifier(folder)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert model(torch.rand(1, 3, 32, 32)).dtype == torch.float32


def test_grey_classifier_takes_grey_images_only(tmp_path):
    folder = saved(tmp_path, vit(num_channels=1), vit_processor(image_mean=0.5, image_std=0.5))
    model = load_classifier(folder)
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 5)
    with pytest.raises(BadImage, match="1 channels"):
        model(torch.rand(2, 3, 28, 28))


def test_processor_that_makes_images_of_the_wrong_size_is_reported(tmp_path):
    folder = saved(tmp_path, vit(), vit_processor(size={"height": 40, "width": 40}))
    model = load_classifier(folder)
    with pytest.raises(BadModel, match=r"ViTForImageClassification does not take the \(40, 40\) images.*\(32, 32\)"):
        model(torch.rand(1, 3, 32, 32))


def test_fingerprint_depends_on_the_preparation(tmp_path):
    network = vit()
    one = load_classifier(saved(tmp_path / "one", network, vit_processor()))
    other = load_classifier(saved(tmp_path / "other", network, vit_processor(image_std=[0.4, 0.5, 0.5])))
    assert NoisyModel("classifier", one).fingerprint != NoisyModel("classifier", other).fingerprint


# Folders


def test_folder_is_read_without_a_network(good, monkeypatch):
    def connect(*args):
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    assert isinstance(load_classifier(good), HubClassifier)


def test_pickle_of_tensors_is_read(good):
    (good / "model.safetensors").unlink()
    network = vit().eval()
    torch.save(network.state_dict(), good / "pytorch_model.bin")
    batch = torch.rand(1, 3, 32, 32)
    model = load_classifier(good)
    assert torch.equal(model(batch), network(model.prepare(batch)).logits)


class Code:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("save", [torch.save, lambda thing, path: path.write_bytes(pickle.dumps(thing))])
def test_pickle_with_code_is_refused_and_not_run(good, save):
    mark = good / "it ran"
    pickle.loads(pickle.dumps(Code(mark)))
    assert mark.exists()  # so the code is one that runs where it is let
    mark.unlink()
    (good / "model.safetensors").unlink()
    save({"classifier.weight": Code(mark)}, good / "pytorch_model.bin")
    with pytest.raises(BadCheckpoint, match="not an image classifier that transformers can load"):
        load_classifier(good)
    assert not mark.exists()


@pytest.mark.parametrize("model_type", ["vit", "mine"], ids=["of a known architecture", "of its own architecture"])
def test_code_in_the_folder_is_not_run(good, model_type):
    mark = good / "it ran"
    (good / "mine.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    for file, names in (
        ("config.json", {"AutoConfig": "mine.Config", "AutoModelForImageClassification": "mine.Net"}),
        ("preprocessor_config.json", {"AutoImageProcessor": "mine.Processor"}),
    ):
        changed(good / file, auto_map=names)
    changed(good / "config.json", model_type=model_type)
    if model_type == "vit":
        load_classifier(good)  # by the code of transformers
    else:
        with pytest.raises(BadCheckpoint):
            load_classifier(good)
    assert not mark.exists()


def changed(path, **settings):
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda f: cut(f / "model.safetensors"), "can load", id="weights cut short"),
        pytest.param(lambda f: (f / "model.safetensors").write_bytes(b""), "can load", id="empty weights"),
        pytest.param(lambda f: (f / "model.safetensors").unlink(), "can load", id="no weights"),
        pytest.param(lambda f: (f / "config.json").unlink(), "can load", id="no config"),
        pytest.param(lambda f: cut(f / "config.json"), "can load", id="config cut short"),
        pytest.param(lambda f: (f / "preprocessor_config.json").unlink(), "its processor too", id="no processor"),
        pytest.param(lambda f: cut(f / "preprocessor_config.json"), "its processor too", id="processor cut short"),
        pytest.param(lambda f: changed(f / "config.json", model_type="bert"), "can load", id="a language model"),
        pytest.param(lambda f: changed(f / "config.json", model_type="what"), "can load", id="unknown architecture"),
        pytest.param(lambda f: changed(f / "config.json", model_type="beit"), "not those of Beit", id="another one"),
        pytest.param(lambda f: changed(f / "config.json", hidden_size=32), "can load", id="another width"),
        pytest.param(lambda f: changed(f / "config.json", num_hidden_layers=2), "16 missing, such as", id="deeper"),
        pytest.param(lambda f: changed(f / "config.json", num_hidden_layers=0), "16 unexpected", id="shallower"),
    ],
)
def test_damaged_folder_is_refused(good, damage, message):
    damage(good)
    with pytest.raises(BadCheckpoint, match=message):
        load_classifier(good)


def test_network_without_a_classifier_is_refused(good):
    """Transformers would give it one with random weights."""
    vit().vit.save_pretrained(good)
    with pytest.raises(BadCheckpoint, match=r"2 missing, such as classifier.bias; .* trained as a classifier"):
        load_classifier(good)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(Path("no/such"), "is not a folder", id="a path"),
        pytest.param("./no/such/folder", "neither a folder nor an id", id="a string that is no id"),
        pytest.param(__file__, "is not a folder", id="a file"),
    ],
)
def test_missing_folder_is_refused(source, message):
    with pytest.raises(BadCheckpoint, match=message):
        load_classifier(source)


# The hub


class Hub:
    """A hub on this machine that offers one folder as owner/name; an empty cache beside it."""

    def __init__(self, folder, cache, monkeypatch):
        commit = hashlib.sha1(b"commit").hexdigest()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                if path == f"/api/models/owner/name/tree/{commit}":
                    files = [{"type": "file", "path": f.name, "size": f.stat().st_size} for f in folder.iterdir()]
                    self.answer(json.dumps([{**f, "oid": f["path"]} for f in files]).encode())
                elif path in ("/api/models/owner/name", "/api/models/owner/name/revision/main"):
                    self.answer(json.dumps({"id": "owner/name", "sha": commit, "siblings": []}).encode())
                elif path.startswith(f"/owner/name/resolve/{commit}/"):
                    fetched.append(Path(path).name)
                    self.answer((folder / Path(path).name).read_bytes())
                else:
                    self.send_error(404)

            do_HEAD = do_GET

            def answer(self, body):
                self.send_response(200)
                self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", commit)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.fetched = fetched = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        constants = pytest.importorskip("huggingface_hub.constants")
        endpoint = f"http://127.0.0.1:{self.server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def go_away(self):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()


@pytest.fixture
def hub(good, tmp_path, monkeypatch):
    hub = Hub(good, tmp_path / "cache", monkeypatch)
    yield hub
    hub.go_away()


def test_id_is_fetched_from_the_hub_and_afterwards_read_from_the_cache(hub, good):
    torch.save({}, good / "pytorch_model.bin")
    batch = torch.rand(1, 3, 32, 32)
    expected = load_classifier(good)(batch)
    assert torch.equal(load_classifier("owner/name")(batch), expected)
    assert set(hub.fetched) == {"config.json", "preprocessor_config.json", "model.safetensors"}
    hub.go_away()
    assert torch.equal(load_classifier("owner/name")(batch), expected)


def test_pickle_is_fetched_where_the_hub_has_no_safetensors(hub, good):
    (good / "model.safetensors").unlink()
    torch.save(vit().state_dict(), good / "pytorch_model.bin")
    assert isinstance(load_classifier("owner/name"), HubClassifier)
    assert "pytorch_model.bin" in hub.fetched


def test_name_that_the_hub_does_not_have_is_reported(hub):
    with pytest.raises(Unreachable, match=r"cannot get owner/other from the hub \(.*404.*\); check the name"):
        load_classifier("owner/other")


def test_hub_that_is_away_is_reported_at_once(hub):
    hub.go_away()
    start = time.monotonic()
    with pytest.raises(Unreachable, match="check the name and the connection, or download its files elsewhere"):
        load_classifier("owner/name")
    assert time.monotonic() - start < 5


def test_hub_that_falls_silent_is_given_up(hub, monkeypatch):
    with pytest.raises(Unreachable, match="404"):
        load_classifier("owner/other")
    monkeypatch.setattr("dualrs.models.hub.SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
        with pytest.raises(Unreachable, match="timed out"):
            load_classifier("owner/other")


# Weights in packages


def test_fingerprint_covers_the_number_of_heads(tmp_path):
    """Same weights and same printed layers, other function."""
    prints = set()
    for heads in (1, 2):
        network = vit(num_attention_heads=heads)
        for parameter in network.parameters():
            parameter.data.fill_(0.1)
        folder = tmp_path / str(heads)
        folder.mkdir()
        prints.add(fingerprint(load_classifier(saved(folder, network, vit_processor()))))
    assert len(prints) == 2


def test_fingerprint_does_not_cover_the_place(tmp_path):
    network = vit()
    prints = set()
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        prints.add(fingerprint(load_classifier(saved(tmp_path / place, network, vit_processor()))))
    assert len(prints) == 1
