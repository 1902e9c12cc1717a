import csv
import errno
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dualrs.errors import BadTable, DualrsError
from dualrs.storage import UNLABELLED, Results, read_table, write

HARD = [1 / 3, 0.1 + 0.2, 0.0, 5e-324, np.nextafter(1.0, 2)]
SUFFIXES = [".tsv", ".csv", ".parquet"]


@pytest.fixture
def results():
    return Results(
        ids=np.array(["toy/0", "a,b", 'say "x"', "tab\there", "é"]),
        index=np.array([0, 20, 40, 60, 80]),
        label=np.array([3, 1, 2, UNLABELLED, 0]),
        prediction=np.array([3, 2, -1, 0, 0]),
        radius=np.array(HARD),
        seconds=np.array([0.5, 3600.000001, math.nan, 59.9999996, 123456.0]),
        sigma_c=np.array([0.25, 0.5, 1.0, 0.25, 0.1 + 0.2]),
    )


def rows_of(path, delimiter):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_tsv_is_what_the_field_reads(results, tmp_path):
    write(results, tmp_path / "r.tsv")
    text = (tmp_path / "r.tsv").read_text()
    assert text.splitlines()[0] == "idx\tlabel\tpredict\tradius\tcorrect\ttime"
    assert text.endswith("\n")
    rows = rows_of(tmp_path / "r.tsv", "\t")
    assert [r["idx"] for r in rows] == ["0", "20", "40", "60", "80"]
    assert [r["label"] for r in rows] == ["3", "1", "2", "", "0"]
    assert [r["predict"] for r in rows] == ["3", "2", "-1", "0", "0"]
    assert [r["radius"] for r in rows] == [repr(float(r)) for r in HARD]
    assert [r["correct"] for r in rows] == ["1", "0", "0", "", "1"]
    assert [r["time"] for r in rows] == ["0:00:00.500000", "1:00:00.000001", "", "0:01:00.000000", "34:17:36.000000"]


def test_csv_has_every_column(results, tmp_path):
    write(results, tmp_path / "r.csv")
    rows = rows_of(tmp_path / "r.csv", ",")
    assert list(rows[0]) == ["id", "index", "label", "prediction", "radius", "correct", "seconds", "sigma_c"]
    assert [r["id"] for r in rows] == results.ids.tolist()
    assert [float(r["radius"]) for r in rows] == HARD
    assert [float(r["sigma_c"]) for r in rows] == results.sigma_c.tolist()
    assert [r["seconds"] for r in rows] == ["0.5", "3600.000001", "", "59.9999996", "123456.0"]
    assert rows[3]["label"] == rows[3]["correct"] == ""


def test_parquet_says_the_same_as_csv(results, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write(results, tmp_path / "r.parquet")
    write(results, tmp_path / "r.csv")
    table = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in table]
    assert as_text == rows_of(tmp_path / "r.csv", ",")
    assert table[3]["label"] is None
    assert [row["radius"] for row in table] == HARD


def test_parquet_without_values_keeps_its_types(results, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    none = Results(**{k: v[:0] for k, v in vars(results).items() if v is not None})
    write(none, tmp_path / "none.parquet")
    write(results, tmp_path / "some.parquet")
    assert parquet.read_schema(tmp_path / "none.parquet") == parquet.read_schema(tmp_path / "some.parquet")


def test_parquet_without_pyarrow(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DualrsError, match=r"pip install dualrs\[parquet\]"):
        write(results, tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


def test_sigma_c_may_be_unknown(results, tmp_path):
    write(Results(**{**vars(results), "sigma_c": None}), tmp_path / "r.csv")
    assert {r["sigma_c"] for r in rows_of(tmp_path / "r.csv", ",")} == {""}


def test_our_tsv_comes_back_through_the_importer(results, tmp_path):
    write(results, tmp_path / "r.tsv")
    imported = read_table(tmp_path / "r.tsv")
    again = imported.results
    for name in ("index", "label", "prediction", "radius"):
        assert np.array_equal(getattr(again, name), getattr(results, name)), name
    assert np.allclose(again.seconds, results.seconds, rtol=0, atol=1e-6, equal_nan=True)
    assert imported.notes == ("1 rows have no label",)


def test_our_csv_comes_back_through_the_importer_in_full(results, tmp_path):
    write(results, tmp_path / "r.csv")
    imported = read_table(tmp_path / "r.csv")
    for name in ("ids", "index", "label", "prediction", "radius", "sigma_c"):
        assert np.array_equal(getattr(imported.results, name), getattr(results, name)), name
    assert np.array_equal(imported.results.seconds, results.seconds, equal_nan=True)
    assert imported.notes == ("1 rows have no label",)
    write(imported.results, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "r.csv").read_bytes()


@pytest.mark.parametrize("name", ["r.txt", "r", "r.tsv.gz", ".csv"])
def test_an_unknown_suffix_names_the_three(results, tmp_path, name):
    with pytest.raises(BadTable, match=r"\.tsv, \.csv, \.parquet"):
        write(results, tmp_path / name)


def test_a_suffix_in_capitals(results, tmp_path):
    write(results, str(tmp_path / "R.TSV"))
    assert (tmp_path / "R.TSV").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_folder(results, tmp_path, suffix):
    with pytest.raises(DualrsError, match="cannot write"):
        write(results, tmp_path / "no" / f"r{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_in_the_place_of_the_file(results, tmp_path, suffix):
    (tmp_path / f"r{suffix}").mkdir()
    with pytest.raises(DualrsError, match="cannot write"):
        write(results, tmp_path / f"r{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [f"r{suffix}"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_room_leaves_the_old_file(results, tmp_path, monkeypatch, suffix):
    target = tmp_path / f"r{suffix}"
    target.write_text("old")
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, mode="r", *a, **k: real(Path("/dev/full"), mode, *a, **k))
    with pytest.raises(DualrsError, match=os.strerror(errno.ENOSPC)):
        write(results, target)
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [target.name]


def test_a_file_is_replaced_as_a_whole(results, tmp_path):
    (tmp_path / "r.csv").write_text("old")
    write(results, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("id,")
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]
