"""HubDataset: folders that save_to_disk wrote, without a network; and a hub that is away, quickly."""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO

import datasets
import huggingface_hub
import numpy as np
import pytest
from PIL import Image

from dualrs.data import hub_data
from dualrs.data.hub_data import HubDataset
from dualrs.errors import BadData, BadImage, BadSetting, MissingExtra, Unreachable

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)
LABELS = [2, 0, 1, 1, 0, 0]
CLASSES = datasets.ClassLabel(names=["a", "b", "c"])


def table(**columns):
    """Six images; further columns as name=(values, feature)."""
    columns = {"picture": ([Image.fromarray(p) for p in PIXELS], datasets.Image()), **columns}
    features = datasets.Features({name: feature for name, (_, feature) in columns.items()})
    return datasets.Dataset.from_dict({name: values for name, (values, _) in columns.items()}, features=features)


@pytest.fixture
def saved(tmp_path):
    """A folder with a train split of all images and a test split of two, in the manner of the hub."""
    whole = table(kind=(LABELS, CLASSES), note=(list("uvwxyz"), datasets.Value("string")))
    datasets.DatasetDict({"train": whole, "test": whole.select([4, 1])}).save_to_disk(tmp_path / "toys")
    return tmp_path / "toys"


def test_images_and_labels_are_found_by_the_kind_of_their_columns(saved):
    dataset = HubDataset(saved, "train")
    assert dataset.name == "toys/train"
    assert dataset.ids == tuple(f"train/{i}" for i in range(6))
    assert dataset.labels == tuple(LABELS)
    assert dataset.classes == ("a", "b", "c")
    for i in range(6):
        np.testing.assert_array_equal(dataset.image(i), PIXELS[i].transpose(2, 0, 1))


def test_the_rows_of_a_selection_are_its_own(saved):
    dataset = HubDataset(str(saved), "test")
    assert dataset.labels == (0, 0)
    np.testing.assert_array_equal(dataset.image(0), PIXELS[4].transpose(2, 0, 1))
    np.testing.assert_array_equal(dataset.image(1), PIXELS[1].transpose(2, 0, 1))


def test_preprocessing_is_that_of_folders(saved):
    dataset = HubDataset(saved, "train", resize=20, crop=16)
    assert dataset.image(0).shape == (3, 16, 16)
    assert dataset.card["crop"] == "central 16 x 16 pixels"
    with pytest.raises(BadSetting, match="crop must be"):
        HubDataset(saved, "train", crop=0)


def test_one_table_without_splits_serves_any_name(tmp_path):
    table(kind=(LABELS, CLASSES)).save_to_disk(tmp_path / "one")
    assert HubDataset(tmp_path / "one", "validation").ids[0] == "validation/0"


def test_fingerprint_covers_images_labels_and_preprocessing(saved, tmp_path):
    table(kind=(LABELS[::-1], CLASSES)).save_to_disk(tmp_path / "relabelled")
    table(kind=(LABELS, CLASSES)).save_to_disk(tmp_path / "again")
    prints = [
        HubDataset(saved, "train").fingerprint,
        HubDataset(saved, "test").fingerprint,
        HubDataset(saved, "train", crop=8).fingerprint,
        HubDataset(tmp_path / "relabelled", "train").fingerprint,
    ]
    assert len(set(prints)) == 4
    assert HubDataset(tmp_path / "again", "train").fingerprint == prints[0]


@pytest.mark.parametrize(
    "columns", [{}, {"kind": ([-1] * 6, CLASSES)}], ids=["no column of classes", "labels kept back"]
)
def test_labels_may_be_absent(tmp_path, columns):
    table(**columns).save_to_disk(tmp_path / "toys")
    dataset = HubDataset(tmp_path / "toys", "test")
    assert dataset.labels is None
    assert dataset.card["classes"] == "no labels"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"second": ([Image.fromarray(PIXELS[0])] * 6, datasets.Image())},
            "has 2 columns of images among picture, sec",
        ),
        ({"fine": (LABELS, CLASSES), "coarse": (LABELS, CLASSES)}, r"several columns of classes \(fine, coarse\)"),
        ({"kind": ([0, 1, None, 0, 0, 0], CLASSES)}, "row 2 has the label None"),
        ({"kind": ([0, -1, 1, 0, 0, 0], CLASSES)}, "row 1 has the label -1, which is none of its 3 classes"),
    ],
    ids=["two images", "two labels", "a label missing", "a label kept back"],
)
def test_ambiguous_tables_are_refused(tmp_path, columns, message):
    table(**columns).save_to_disk(tmp_path / "toys")
    with pytest.raises(BadData, match=message):
        HubDataset(tmp_path / "toys", "train")


def test_a_table_without_images_is_refused(tmp_path):
    table(kind=(LABELS, CLASSES)).remove_columns("picture").save_to_disk(tmp_path / "toys")
    with pytest.raises(BadData, match="has 0 columns of images among kind"):
        HubDataset(tmp_path / "toys", "train")


def test_an_unknown_split_is_refused(saved):
    with pytest.raises(BadData, match="has no split 'validation'; it has train, test"):
        HubDataset(saved, "validation")


def test_a_folder_that_save_to_disk_did_not_write_is_refused(tmp_path):
    (tmp_path / "toys").mkdir()
    with pytest.raises(BadData, match="toys does not hold a dataset as save_to_disk writes it"):
        HubDataset(tmp_path / "toys", "train")


def test_a_damaged_folder_is_refused(saved):
    for file in saved.rglob("*.arrow"):
        file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(BadData, match="toys does not hold a dataset as save_to_disk writes it"):
        HubDataset(saved, "train")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"bytes": b"no image", "path": None}, "cannot decode the image train/0: it is of no known format"),
        (None, "cannot read the image train/0 of toys/train"),
    ],
    ids=["not an image", "an empty cell"],
)
def test_a_damaged_image_is_named_when_it_is_asked_for(tmp_path, cell, message):
    cells([cell, {"bytes": png(PIXELS[0]), "path": None}]).save_to_disk(tmp_path / "toys")
    dataset = HubDataset(tmp_path / "toys", "train", crop=8)
    dataset.image(1)
    with pytest.raises(BadImage, match=message):
        dataset.image(0)


def cells(rows):
    return datasets.Dataset.from_dict({"picture": rows}, features=datasets.Features({"picture": datasets.Image()}))


def png(pixels):
    file = BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


# The hub


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine that gives one answer to everything; the fixture sets it up."""
    servers = []

    def start(status, body=b"{}", wait=0.0):
        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):
                time.sleep(wait)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Answer)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


KNOWN = b'{"id": "ours/toys", "sha": "0", "private": false, "tags": [], "siblings": []}'


def test_a_hub_that_is_away_is_noticed_at_once(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    began = time.perf_counter()
    with pytest.raises(Unreachable, match=r"cannot get ours/toys from the hub \(.*refused\); check the name"):
        HubDataset("ours/toys", "train")
    assert time.perf_counter() - began < 5


def test_a_hub_that_keeps_silent_is_not_waited_for(hub, monkeypatch):
    hub(200, wait=1.0)
    monkeypatch.setattr(hub_data, "PATIENCE", 0.2)
    with pytest.raises(Unreachable, match="cannot get ours/toys from the hub"):
        HubDataset("ours/toys", "train")


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_name_that_the_hub_does_not_give_is_refused(hub, status):
    hub(status)
    with pytest.raises(Unreachable, match="cannot get ours/toys from the hub"):
        HubDataset("ours/toys", "train")


def test_what_can_be_no_id_is_refused():
    with pytest.raises(BadData, match="data/my/toys is neither a folder nor an id of the hub"):
        HubDataset("data/my/toys", "train")


def test_a_dataset_of_the_hub_is_named_by_its_id(hub, monkeypatch):
    hub(200, KNOWN)
    monkeypatch.setattr(datasets, "load_dataset", lambda source, split: table(kind=(LABELS, CLASSES)))
    assert HubDataset("ours/toys", "train").name == "ours/toys/train"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("Unknown split \"x\". Should be one of ['train']."), BadData, 'Unknown split "x"'),
        (ConnectionError("gone in the middle"), Unreachable, "gone in the middle"),
        (RuntimeError("Dataset scripts are no longer supported"), Unreachable, "scripts are no longer supported"),
    ],
    ids=["unknown split", "connection lost", "a dataset that is code"],
)
def test_what_the_library_refuses_becomes_one_sentence(hub, monkeypatch, error, kind, message):
    def refuse(source, split):
        raise error

    hub(200, KNOWN)
    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(kind, match=message):
        HubDataset("ours/toys", "x")


@pytest.fixture
def cached(monkeypatch):
    """A dataset that the library has, whatever the hub says."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)

    def put(found):
        monkeypatch.setattr(datasets, "load_dataset", lambda source, split: found)

    return put


def test_offline_mode_leaves_it_to_the_cache(cached):
    cached(table(kind=(LABELS, CLASSES)))
    assert len(HubDataset("ours/toys", "train")) == 6


def test_images_may_lie_in_files_beside_the_table(cached, tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(png(PIXELS[3]))
    cached(cells([{"bytes": None, "path": str(file)}]))
    dataset = HubDataset("ours/toys", "train")
    np.testing.assert_array_equal(dataset.image(0), PIXELS[3].transpose(2, 0, 1))
    file.unlink()
    with pytest.raises(BadImage, match=r"cannot read the image train/0 of ours/toys/train: .*No such file"):
        dataset.image(0)


def test_an_empty_split_is_refused(cached):
    cached(table().select([]))
    with pytest.raises(BadData, match="ours/toys/train is empty"):
        HubDataset("ours/toys", "train")


def test_without_the_library_the_command_that_installs_it_is_named(monkeypatch, saved):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dualrs\[hub\]'"):
        HubDataset(saved, "train")
