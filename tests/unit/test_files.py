"""Files that appear as a whole: what is left when one did not."""

import os
import subprocess
import sys

import pytest

from dualrs.files import whole_file


@pytest.fixture
def dead():
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path, dead):
    path = tmp_path / "bundle[1].toml"
    (tmp_path / f".{path.name}.{dead}").write_text("half")
    with whole_file(path) as file:
        file.write(b"whole")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"whole"


def test_what_is_not_left_by_a_killed_process_stays(tmp_path, dead):
    others = {f".a.{os.getppid()}", f".b.{dead}", f".a.{dead}.gz", f"a.{dead}", ".a.1x", ".a."}
    for name in others:
        (tmp_path / name).write_text("")
    with whole_file(tmp_path / "a"):
        pass
    assert {p.name for p in tmp_path.iterdir()} == others | {"a"}
