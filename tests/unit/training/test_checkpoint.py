"""Checkpoints as files: read as they were written, or refused."""

import io
import zipfile

import pytest
import torch

from dualrs.errors import BadCheckpoint
from dualrs.training import checkpoint
from dualrs.training.checkpoint import read_checkpoint, write_checkpoint

CONTENT = {"step": 3, "identity": "ü", "network": {"weight": torch.arange(6.0).reshape(2, 3)}}


@pytest.fixture
def path(tmp_path):
    write_checkpoint(CONTENT, tmp_path / "c")
    return tmp_path / "c"


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_what_was_written_is_read(path, monkeypatch, at_once):
    monkeypatch.setattr(checkpoint, "_AT_ONCE", at_once)
    found = read_checkpoint(path)
    assert (found["step"], found["identity"]) == (3, "ü")
    assert torch.equal(found["network"]["weight"], CONTENT["network"]["weight"])


def test_every_single_bit_matters(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(BadCheckpoint, match="does not end with the digest of what it holds"):
            read_checkpoint(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:10],
        lambda whole: whole[:-1],
        lambda whole: whole[:-64],
        lambda whole: whole[1:],
        lambda whole: whole + b"\0",
        lambda whole: whole + whole,
    ],
    ids=["nothing", "the beginning", "one digit less", "no digest", "the first byte gone", "one more byte", "twice"],
)
def test_other_lengths_are_refused(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadCheckpoint, match="does not end with the digest"):
        read_checkpoint(path)


def sealed(path, archive):
    """Put another archive in place with a digest that fits it, as anyone could."""
    path.write_bytes(archive + checkpoint._digest(io.BytesIO(archive), len(archive)))


def test_a_sealed_archive_that_would_unpack_to_a_flood_is_refused(path):
    out = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    sealed(path, out.getvalue())
    with pytest.raises(BadCheckpoint, match="is damaged"):
        read_checkpoint(path)


def test_a_sealed_archive_with_a_wrong_number_in_it_is_refused(path):
    archive = path.read_bytes()[:-64]
    numbers = CONTENT["network"]["weight"].numpy().tobytes()
    sealed(path, archive.replace(numbers, bytes(len(numbers))))
    with pytest.raises(BadCheckpoint, match="is damaged"):
        read_checkpoint(path)
