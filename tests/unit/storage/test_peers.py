import math

import numpy as np
import pytest

from dualrs.errors import BadTable
from dualrs.report import certified_accuracy
from dualrs.storage import UNLABELLED, read_table
from dualrs.storage.peers import CORE, SELECTOR

HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime"
PLAIN = [
    "0\t3\t3\t1.0203\t1\t0:00:01.500000",
    "20\t8\t-1\t0.0\t0\t0:00:01",
    "40\t1\t2\t0.44567\t0\t0:01:02.25",
    "60\t6\t6\t0.12345678\t1\t2.5",
]


@pytest.fixture
def read(tmp_path):
    def reader(*lines, end="\n", encoding="utf-8"):
        path = tmp_path / "peer.tsv"
        path.write_bytes(("\n".join(lines) + end).encode(encoding))
        return read_table(path)

    return reader


def with_correct(values, truth):
    """A table whose prediction is right where truth says so, with another correct column."""
    pairs = enumerate(zip(values, truth, strict=True))
    return [HEADER, *(f"{i}\t1\t{1 if right else 2}\t0.51234\t{value}\t1.0" for i, (value, right) in pairs)]


def test_the_common_form(read):
    imported = read(HEADER, *PLAIN)
    results = imported.results
    assert imported.notes == ()
    assert results.ids.tolist() == ["0", "20", "40", "60"]
    assert results.index.tolist() == [0, 20, 40, 60]
    assert results.label.tolist() == [3, 8, 1, 6]
    assert results.prediction.tolist() == [3, -1, 2, 6]
    assert results.radius.tolist() == [1.0203, 0.0, 0.44567, 0.12345678]
    assert results.seconds.tolist() == [1.5, 1.0, 62.25, 2.5]
    assert results.correct.tolist() == [True, False, False, True]
    assert results.sigma_c is None


def test_a_class_with_radius_0_is_a_claim_about_the_input_alone(read):
    """As ACES writes where its core network answers; the tables of the field count it at radius 0."""
    imported = read(HEADER, *PLAIN, "80\t2\t2\t0.0\t1\t1.0")
    assert imported.results.plain.tolist() == [False, False, False, False, True]
    assert imported.notes == (
        "1 rows name a class with radius 0: they are claims about the input alone, and count at radius 0 only",
    )
    assert certified_accuracy(imported.results, (0, 0.1)).tolist() == [3 / 5, 2 / 5]
    assert read(HEADER, *PLAIN).results.plain is None


def test_commas_say_the_same_as_tabs(read):
    tabs = read(HEADER, *PLAIN)
    commas = read(*(line.replace("\t", ",") for line in (HEADER, *PLAIN)))
    assert commas.notes == tabs.notes
    for name in ("ids", "index", "label", "prediction", "radius", "seconds"):
        assert np.array_equal(getattr(commas.results, name), getattr(tabs.results, name)), name


def test_multiscale_writes_minus_two_where_no_stage_decided(read):
    imported = read(HEADER, *PLAIN, "80\t2\t-2\t0.0\t0\t1.0")
    assert imported.results.prediction.tolist() == [3, -1, 2, 6, -1]
    assert imported.results.abstained.sum() == 2
    assert imported.notes == ("1 rows have predict -2, undecided: they count as abstentions",)


def test_one_infinite_radius_does_not_lose_the_file(read):
    imported = read(HEADER, *PLAIN, "80\t2\t2\tinf\t1\t1.0")
    assert imported.results.radius.tolist()[-1] == 0
    assert imported.notes[0] == "1 rows have an infinite radius, which no votes can prove: it is taken as 0"
    assert certified_accuracy(imported.results, (0, 0.1, 100)).tolist() == [3 / 5, 2 / 5, 0]


def test_negative_radii_are_noted(read):
    imported = read(HEADER, *PLAIN, "80\t2\t2\t-0.3124\t1\t1.0", "81\t2\t-1\t-0.3124\t0\t1.0")
    assert imported.notes == (
        "1 rows name a class with a negative radius, as tables about other norms have them: they certify nothing here",
    )
    assert certified_accuracy(imported.results, (0, 0.1)).tolist() == [2 / 6, 2 / 6]


class TestDialects:
    def test_extra_columns_are_listed(self, read):
        imported = read("idx\tmodel\tlabel\tpredict\tradius\tcorrect\ttime\tnote", "0\ta\t3\t3\t1.0203\t1\t1\tx")
        assert imported.notes == ("columns that are not used: model, note",)
        assert imported.results.radius.tolist() == [1.0203]

    def test_correct_and_time_may_be_missing(self, read):
        imported = read("idx\tlabel\tpredict\tradius", "0\t3\t3\t1.0203")
        assert imported.notes == ("there is no column correct", "there is no column time")
        assert math.isnan(imported.results.seconds[0])
        assert imported.results.correct.tolist() == [True]

    def test_columns_in_another_order(self, read):
        imported = read("radius\tpredict\tlabel\tidx", "1.0203\t3\t4\t7")
        assert imported.results.index.tolist() == [7]
        assert imported.results.label.tolist() == [4]

    def test_windows_line_ends_and_a_byte_order_mark(self, read):
        imported = read(HEADER + "\r", *(line + "\r" for line in PLAIN), encoding="utf-8-sig")
        assert imported.notes == ()
        assert len(imported.results) == 4

    def test_blank_lines(self, read):
        imported = read("", HEADER, *PLAIN, "", "  ", "")
        assert imported.notes == ()
        assert len(imported.results) == 4

    def test_whole_numbers_from_a_float_column(self, read):
        assert read(HEADER, "0.0\t3.0\t-1.0\t0.0\t0\t1").results.prediction.tolist() == [-1]

    def test_true_and_false(self, read):
        assert read(*with_correct(["True", "False"], [1, 0])).notes == ()

    def test_labels_may_be_unknown(self, read):
        imported = read(HEADER, "0\t\t3\t1.0203\t0\t1", "1\t-1\t-1\t0.0\t0\t1", PLAIN[2])
        assert imported.results.label.tolist() == [UNLABELLED, UNLABELLED, 1]
        assert imported.notes == ("2 rows have no label",)

    def test_a_long_time(self, read):
        imported = read(HEADER, "0\t3\t3\t1.0203\t1\t1 day, 0:00:01.5", "1\t3\t3\t1.0203\t1\t2 days, 1:00:00")
        assert imported.results.seconds.tolist() == [86401.5, 2 * 86400 + 3600]

    @pytest.mark.parametrize("time", ["long", f"{'9' * 400}:00:00", f"{'9' * 5000}:00:00"], ids=lambda time: time[:9])
    def test_an_unreadable_time_is_no_reason_to_refuse(self, read, time):
        imported = read(HEADER, f"0\t3\t3\t1.0203\t1\t{time}", *PLAIN[1:])
        assert imported.notes == ("column time: 1 cells cannot be read",)
        assert math.isnan(imported.results.seconds[0])

    def test_several_files_put_together(self, read):
        imported = read(HEADER, *PLAIN[:2], HEADER, *PLAIN[2:])
        assert imported.notes == ("the header stands 2 times: several files were put together",)
        assert len(imported.results) == 4

    def test_a_row_written_twice(self, read):
        imported = read(HEADER, *PLAIN, PLAIN[0].replace("0:00:01.5", "0:00:09.5"))
        assert imported.notes == ("1 rows repeat an idx with the same values; the first of each is kept",)
        assert imported.results.seconds[0] == 1.5

    def test_an_abstention_with_a_radius(self, read):
        imported = read(HEADER, "0\t3\t-1\t1.0203\t0\t1")
        assert imported.notes == ("1 rows abstain but carry a positive radius, which claims nothing",)


class TestCorrectColumn:
    truth = (1, 0, 1, 1, 0, 1)

    def test_running_total(self, read):
        (note,) = read(*with_correct(np.cumsum(self.truth), self.truth)).notes
        assert note.startswith("column correct holds a running total, not 0 or 1; it is not used")

    def test_running_total_which_never_exceeds_one(self, read):
        (note,) = read(*with_correct([0, 1, 1], [0, 1, 0])).notes
        assert "running total" in note

    def test_running_total_that_starts_somewhere_or_restarts(self, read):
        (note,) = read(*with_correct([17, 18, 18, 0, 0, 1], self.truth)).notes
        assert "running total" in note

    @pytest.mark.parametrize("form", ["{}", "{:.3f}", "{:.2f}"])
    def test_running_accuracy(self, read, form):
        values = [form.format(v) for v in np.cumsum(self.truth) / np.arange(1, 7)]
        (note,) = read(*with_correct(values, self.truth)).notes
        assert "column correct holds a running accuracy" in note

    def test_fractions_of_another_kind(self, read):
        (note,) = read(*with_correct([0.1, 0.9, 0.2, 0.3, 0.4, 0.5], self.truth)).notes
        assert "seems to hold a running accuracy" in note

    def test_disagreement_is_counted(self, read):
        (note,) = read(*with_correct([0, 0, 1, 1, 1, 1], self.truth)).notes
        assert "disagrees with predict == label in 2 of 6 rows" in note

    def test_anything_else(self, read):
        (note,) = read(*with_correct([5, 90, 1, 0, 44, 1], self.truth)).notes
        assert "values other than 0 and 1" in note

    def test_whatever_it_says_correct_is_prediction_equal_to_label(self, read):
        imported = read(*with_correct(np.cumsum(self.truth), self.truth))
        assert imported.results.correct.tolist() == [bool(t) for t in self.truth]


class TestRoundedRadii:
    def radii(self, read, *radii):
        rows = ((i, 1 if float(r) else -1, r) for i, r in enumerate(radii))
        return read(HEADER, *(f"{i}\t1\t{predict}\t{r}\t{int(predict == 1)}\t1" for i, predict, r in rows)).notes

    def test_three_digits_everywhere(self, read):
        (note,) = self.radii(read, "0.958", "1.23", "0.0", "2.5", "0.0123")
        assert note == (
            "radii have at most 3 significant digits: they may be rounded up by up to half a unit of the last digit, "
            "here 0.005"
        )

    def test_small_ones_and_exponents(self, read):
        (note,) = self.radii(read, "0.958", "1.2e-05")
        assert note.endswith("here 0.0005")

    def test_four_digits_anywhere(self, read):
        assert self.radii(read, "0.958", "1.234") == ()

    def test_nothing_but_zeros(self, read):
        assert self.radii(read, "0.0", "0") == ()


class TestKilledRuns:
    @pytest.mark.parametrize("rest", ["80", "80\t3", "80\t3\t3\t1.2", "80\t3\t3\t1.2\t1"])
    def test_a_last_line_cut_short_is_left_out(self, read, rest):
        imported = read(HEADER, *PLAIN, rest, end="")
        assert imported.notes == ("line 6, the last, was cut short and is left out: the run may have been killed",)
        assert len(imported.results) == 4

    def test_a_last_line_cut_in_its_time_is_whole_enough(self, read):
        imported = read(HEADER, *PLAIN, "80\t3\t3\t1.2345\t1\t0:00", end="")
        assert len(imported.results) == 5
        assert imported.notes == ("column time: 1 cells cannot be read",)

    def test_a_last_radius_that_may_be_cut(self, read):
        imported = read("idx\tlabel\tpredict\tradius", "0\t3\t3\t1.23456", "1\t3\t3\t1.2", end="")
        assert "line 3, the last, has no line end: its radius may have been cut short" in imported.notes

    def test_a_last_radius_cut_to_nothing(self, read):
        imported = read("idx\tlabel\tpredict\tradius", "0\t3\t3\t1.23456", "1\t3\t3\t", end="")
        assert len(imported.results) == 1
        assert any("cut short and is left out" in note for note in imported.notes)

    def test_the_same_in_the_middle_is_an_error(self, read):
        with pytest.raises(BadTable, match="line 4: 3 cells where the header names 6 columns"):
            read(HEADER, *PLAIN[:2], "40\t1\t2", PLAIN[3])


class TestSigmas:
    HEAD = "idx,label,predict,radius,correct,time,sigma"

    def test_one_sigma_in_all_rows_is_that_of_the_table(self, read):
        imported = read(self.HEAD, "0,3,3,1.0203,1,1,0.5", "1,3,3,0.2203,1,1,0.50")
        assert (imported.sigma, imported.notes, imported.results.sigma_c) == (0.5, (), None)

    def test_a_sigma_for_each_input(self, read):
        imported = read(self.HEAD, "0,3,3,1.0203,1,1,0.5", "1,3,3,0.2203,1,1,0.25")
        assert imported.sigma is None
        assert imported.results.sigma_c.tolist() == [0.5, 0.25]

    @pytest.mark.parametrize("cell", ["", "0", "-1", "nan", "inf", "x"])
    def test_cells_without_a_sigma(self, read, cell):
        imported = read(self.HEAD, "0,3,3,1.0203,1,1,0.5", f"1,3,3,0.2203,1,1,{cell}")
        assert imported.sigma is None
        assert imported.notes == ("column sigma is not used: in some rows it has no positive number",)

    def test_an_input_at_two_sigmas(self, read):
        with pytest.raises(
            BadTable, match=r"line 3: idx 0 stood in line 2 with sigma 0.25, and here with 0.5; .*divide"
        ):
            read(self.HEAD, "0,3,3,1.0203,1,1,0.25", "0,3,3,1.0203,1,1,0.5")


class TestParts:
    """Logs of ACES: a selector has no labels, and a core network no radii."""

    def test_a_selector(self, tmp_path):
        path = tmp_path / "selection_0.50"
        path.write_text("idx\tpredict\tradius\tunperturbed predict\ttime\n0\t1\t0.94712\t1\t1\n20\t-1\t0.0\t0\t1\n")
        imported = read_table(path, SELECTOR)
        assert imported.results.prediction.tolist() == [1, -1]
        assert imported.results.radius.tolist() == [0.94712, 0]
        assert not imported.results.labelled.any()
        assert imported.notes == ("columns that are not used: unperturbed predict",)
        with pytest.raises(BadTable, match=r"no column label among .* that of its certifier, as SELECTOR,CERTIFIER"):
            read_table(path)

    def test_a_core_network(self, tmp_path):
        path = tmp_path / "core_prediction"
        path.write_text("idx\tlabel\tpredict\tcorrect\ttime\n0\t3\t3\t1\t0:00:00.374120\n20\t7\t1\t0\t1\n")
        imported = read_table(path, CORE)
        assert imported.results.plain.all()
        assert certified_accuracy(imported.results, (0.0, 0.1)).tolist() == [0.5, 0]
        assert imported.notes == ()
        with pytest.raises(BadTable, match=r"no column radius among .* predictions holds no certificates"):
            read_table(path)


class TestRefusals:
    @pytest.mark.parametrize("column", ["idx", "label", "predict", "radius"])
    def test_a_missing_column(self, read, column):
        with pytest.raises(BadTable, match=f"line 1: no column {column} among"):
            read(HEADER.replace(column, "x"), *PLAIN)

    def test_another_separator(self, read):
        with pytest.raises(BadTable, match="separated by tabs"):
            read(HEADER.replace("\t", ";"), *PLAIN)

    @pytest.mark.parametrize("cell", ['"', "a\rb", "9" * 200_000])
    def test_a_cell_that_does_not_end(self, read, cell):
        with pytest.raises(BadTable, match="line 3"):
            read("idx,label,predict,radius", "0,1,1,0.5", f"1,1,{cell},0.5", "2,1,1,0.5")

    def test_no_header(self, read):
        with pytest.raises(BadTable, match="first line must name the columns"):
            read(*PLAIN)

    def test_a_column_twice(self, read):
        with pytest.raises(BadTable, match="stands twice"):
            read(HEADER + "\tidx", *(line + "\t0" for line in PLAIN))

    @pytest.mark.parametrize(
        ("cells", "what"),
        [
            ("x\t3\t3\t1.0\t1\t1", "idx is 'x'"),
            ("0.5\t3\t3\t1.0\t1\t1", "idx is '0.5'"),
            ("1e300\t3\t3\t1.0\t1\t1", "idx is '1e300'"),
            ("0\tcat\t3\t1.0\t1\t1", "label is 'cat'"),
            ("0\t3\tnan\t1.0\t1\t1", "predict is 'nan'"),
            ("0\t3\t-3\t1.0\t1\t1", "predict is -3"),
            ("0\t3\t3\t\t1\t1", "radius is ''"),
            ("0\t3\t3\tnan\t1\t1", "radius is 'nan'"),
            ("0\t3\t3\ttensor(1.0)\t1\t1", r"radius is 'tensor\(1.0\)'"),
            ("0\t3\t3\t1.0\t1\t1\t9", "7 cells"),
        ],
    )
    def test_a_bad_cell_with_its_line(self, read, cells, what):
        with pytest.raises(BadTable, match=f"peer.tsv, line 3: {what}"):
            read(HEADER, PLAIN[1], cells, PLAIN[3])

    def test_one_idx_with_two_answers(self, read):
        with pytest.raises(BadTable, match="line 6: idx 20 stood in line 3 with other values"):
            read(HEADER, *PLAIN, "20\t8\t8\t0.5\t1\t1")

    @pytest.mark.parametrize("lines", [("",), ("", "  ")], ids=["nothing", "blanks"])
    def test_an_empty_file(self, read, lines):
        with pytest.raises(BadTable, match="is empty"):
            read(*lines)

    def test_a_header_alone(self, read):
        with pytest.raises(BadTable, match="holds no rows"):
            read(HEADER)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(BadTable, match="there is no file"):
            read_table(tmp_path / "none.tsv")

    def test_a_folder(self, tmp_path):
        with pytest.raises(BadTable, match="cannot be read"):
            read_table(tmp_path)

    def test_bytes_that_are_no_text(self, tmp_path):
        (tmp_path / "b.tsv").write_bytes(b"\xff\xfe\x00\x80")
        with pytest.raises(BadTable, match="cannot be read as text"):
            read_table(tmp_path / "b.tsv")
