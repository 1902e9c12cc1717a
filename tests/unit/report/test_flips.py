"""Published certificates against published predictions on attacked images."""

import sys

import pytest
from scipy.stats import binom

from dualrs.cli import main
from dualrs.errors import BadSetting, BadTable
from dualrs.report.flips import compare_predictions
from dualrs.storage import read_table

# idx, label, predict, radius
CERTIFIED = [(0, 3, 3, 0.378), (20, 7, -1, 0.0), (40, 4, 4, 0.251), (60, 7, 1, 0.25), (80, 1, 1, 0.9)]


@pytest.fixture
def tables(tmp_path):
    """A table of certificates as Cohen et al. write it, and how to write predictions as SmoothAdv does."""
    certificates = tmp_path / "sigma_0.25"
    lines = [f"{i}\t{y}\t{p}\t{r}\t{int(y == p)}\t15.4" for i, y, p, r in CERTIFIED]
    certificates.write_text("\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *lines]) + "\n")

    def predictions(name, rows, ending="\n"):
        path = tmp_path / name
        lines = [f"{i}\t{y}\t{p}\t{p}\t{int(y == p)}\t0:00:15.896633" for i, y, p in rows]
        path.write_text("\n".join(["idx\tlabel\tpredict\tbasePredict\tcorrect\ttime", *lines]) + ending)
        return path

    return certificates, predictions


def compared(certificates, *paths, radius=0.25):
    return compare_predictions(read_table(certificates).results, paths, radius, 0.001)


def test_only_certificates_that_reach_farther_count(tables):
    certificates, predictions = tables
    path = predictions("p", [(0, 3, 3), (20, 7, 2), (40, 4, 4), (60, 7, 2), (80, 1, -1), (100, 0, 5)])
    found = compared(certificates, path)
    assert (found.certificates, found.comparisons, found.abstained, found.flipped) == (3, 3, 1, ())
    assert found.chance == 1.0


def test_a_flip_contradicts_its_certificate_once(tables):
    certificates, predictions = tables
    paths = [predictions(name, [(0, 3, 5), (40, 4, 4), (80, 1, 1)]) for name in "ab"]
    found = compared(certificates, *paths)
    assert (found.comparisons, found.flipped) == (6, (0,))
    assert found.chance == pytest.approx(binom.sf(0, 3, 0.003))


def test_a_wrong_but_certified_answer_is_no_flip(tables):
    """Certificates are about the answer, whatever the label."""
    certificates, predictions = tables
    assert compared(certificates, predictions("p", [(60, 7, 1)]), radius=0.1).flipped == ()
    assert compared(certificates, predictions("p", [(60, 7, 7)]), radius=0.1).flipped == (60,)


def test_a_last_line_that_was_cut_off_is_left_out(tables):
    certificates, predictions = tables
    path = predictions("p", [(0, 3, 3), (40, 4, 4)], ending="\n80\t1")
    assert compared(certificates, path).comparisons == 2


@pytest.mark.parametrize(
    ("rows", "radius", "error", "message"),
    [
        ([(0, 4, 3)], 0.25, BadTable, "gives idx 0 the label 4, and the certificates 3"),
        ([(0, 3, "x")], 0.25, BadTable, "line 2: predict is 'x'"),
        ([(0, 3, 3), (0, 3, 4)], 0.25, BadTable, "idx 0 stood in line 2"),
        ([(0, 3, 3)], -1.0, BadSetting, "at least 0"),
    ],
)
def test_bad_tables_are_refused(tables, rows, radius, error, message):
    certificates, predictions = tables
    with pytest.raises(error, match=message):
        compared(certificates, predictions("p", rows), radius=radius)


def test_a_table_without_predictions_is_refused(tables):
    certificates, _ = tables
    other = certificates.with_name("other")
    other.write_text("idx\tlabel\n0\t3\n")
    with pytest.raises(BadTable, match="no column predict"):
        compared(certificates, other)


class TestCommand:
    @pytest.fixture
    def dualrs(self, monkeypatch, capsys):
        def run(*words):
            monkeypatch.setattr(sys, "argv", ["dualrs", *map(str, words)])
            with pytest.raises(SystemExit) as end:
                main()
            return end.value.code or 0, capsys.readouterr().out

        return run

    def test_agreement(self, dualrs, tables):
        certificates, predictions = tables
        code, out = dualrs("flips", certificates, predictions("p", [(0, 3, 3), (40, 4, 4)]), "--radius", "0.25")
        assert code == 0
        assert "0 of 2 certificates contradicted, in 2 comparisons" in out

    def test_contradictions_end_with_code_1(self, dualrs, tables):
        certificates, predictions = tables
        path = predictions("p", [(0, 3, 5), (40, 4, 5), (80, 1, 5)])
        code, out = dualrs("flips", certificates, path, "--radius", "0.25")
        assert code == 1
        assert "not chance: idx 0, 40, 80" in out
