"""Methods of several files side by side: on the same inputs, or refused with what differs."""

import csv
import io
import re
from time import process_time

import numpy as np
import pytest
from compared_ledgers import ledger_file

from dualrs.errors import BadSetting, BadTable, LedgerError
from dualrs.report.accuracy import average_certified_radius, certified_accuracy
from dualrs.report.compare import compare, gather
from dualrs.report.methods import Derived
from dualrs.report.tables import as_csv, as_latex, as_markdown
from dualrs.storage import Ledger, Results, derive, write

RADII = (0.0, 0.3, 0.6, 1.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    ledger_file(folder / "one.ledger")
    ledger_file(folder / "two.ledger", seed=1)
    with Ledger.open(folder / "one.ledger") as ledger:
        write(derive(ledger, rule="paper")[0], folder / "theirs.tsv")
    return folder


def test_one_ledger_gives_every_method_under_its_own_name(folder):
    found = gather([folder / "one.ledger"])
    assert "fusion" in found.methods
    comparison = compare(found.methods, RADII)
    assert [row.name for row in comparison.rows] == [*found.methods, "envelope"]
    assert comparison.inputs == 60
    for row in comparison.rows[:-1]:
        results = found.methods[row.name].results
        assert row.accuracy == tuple(certified_accuracy(results, RADII))
        assert row.average_radius == average_certified_radius(results)
        assert row.abstention == results.abstained.mean()
        assert (row.mean_votes, row.worst_votes) == (
            found.methods[row.name].votes_per_input.mean(),
            found.methods[row.name].votes_per_input.max(),
        )
        assert row.differences == ()
    assert "one: the rule of the run is fusion, fixed before its votes" in found.notes
    assert any("dominated by easy inputs" in note for note in comparison.notes)


def test_inputs_at_some_positions_alone(folder):
    every = gather([folder / "one.ledger"], ["fusion", "oracle"]).methods
    some = gather([folder / "one.ledger", folder / "theirs.tsv"], ["fusion", "oracle"], inputs=range(5, 40, 7)).methods
    assert some["fusion"].results.index.tolist() == [5, 12, 19, 26, 33]
    assert some["theirs"].results.index.tolist() == [5, 12, 19, 26, 33]
    for name in ("fusion", "oracle"):
        assert some[name].results.radius.tolist() == every[name].results.radius[5:40:7].tolist()
        assert len(some[name].votes_per_input) == 5
    with pytest.raises(BadSetting, match="none of the 60 inputs of the run stands at these positions"):
        gather([folder / "one.ledger"], inputs=range(60, 80))
    with pytest.raises(BadSetting, match="positions of inputs are those that a ledger has"):
        gather([folder / "theirs.tsv"], inputs=range(3))


def test_differences_are_paired_and_in_place(folder):
    found = gather([folder / "one.ledger"])
    rows = {row.name: row for row in compare(found.methods, RADII, baseline="paper").rows}
    assert rows["paper"].differences == ()
    assert rows["envelope"].differences == ()
    for name in ("nosplit", "fusion", "sigma-0.5"):
        for ours, theirs, difference in zip(
            rows[name].accuracy, rows["paper"].accuracy, rows[name].differences, strict=True
        ):
            assert difference.value == pytest.approx(ours - theirs)
            assert difference.low <= difference.value <= difference.high
    assert all(d.low >= 0 for d in rows["nosplit"].differences)  # never below paper, input by input


def test_several_ledgers_lend_their_names(folder):
    names = gather([folder / "one.ledger", folder / "two.ledger"], ["fusion", "sigma-0.5"]).methods
    assert list(names) == ["one/fusion", "one/sigma-0.5", "two/fusion", "two/sigma-0.5"]
    assert [m.name for m in names.values()] == list(names)
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "one.ledger").write_bytes((folder / "two.ledger").read_bytes())
    names = gather([folder / "one.ledger", folder / "deep" / "one.ledger"], ["fusion"]).methods
    assert list(names) == [f"{folder}/one.ledger/fusion", f"{folder}/deep/one.ledger/fusion"]


def test_a_name_with_its_ledger_asks_for_a_method_of_that_one(folder):
    files = [folder / "one.ledger", folder / "two.ledger"]
    assert list(gather(files, ["two/paper", "fusion"]).methods) == ["one/fusion", "two/paper", "two/fusion"]
    assert list(gather(files, ["two/paper"]).methods) == ["two/paper"]
    with pytest.raises(BadSetting, match="no method 'three/paper'"):
        gather(files, ["three/paper"])


def test_a_table_of_another_project_stands_beside_a_ledger(folder):
    found = gather([folder / "one.ledger", folder / "theirs.tsv"])
    rows = {row.name: row for row in compare(found.methods, RADII, baseline="theirs").rows}
    assert rows["theirs"].accuracy == rows["paper"].accuracy  # it was exported from there
    assert rows["theirs"].title == "as reported"
    assert rows["theirs"].mean_votes is None
    assert all((d.value, d.low, d.high) == (0, 0, 0) for d in rows["paper"].differences)


def test_rows_are_matched_whatever_their_order(folder, tmp_path):
    head, *lines = (folder / "theirs.tsv").read_text().splitlines()
    (tmp_path / "shuffled.tsv").write_text("\n".join([head, *np.random.default_rng(0).permutation(lines)]) + "\n")
    found = gather([folder / "one.ledger", tmp_path / "shuffled.tsv"]).methods
    np.testing.assert_array_equal(found["shuffled"].results.radius, found["paper"].results.radius)
    turned = gather([tmp_path / "shuffled.tsv", folder / "one.ledger"]).methods
    paper = turned["paper"]
    np.testing.assert_array_equal(turned["shuffled"].results.radius, paper.results.radius)
    np.testing.assert_array_equal(paper.certificates.radius, paper.results.radius)


def test_a_name_with_a_number_keeps_it(folder, tmp_path):
    (tmp_path / "sigma_0.25").write_text((folder / "theirs.tsv").read_text())
    assert list(gather([tmp_path / "sigma_0.25"]).methods) == ["sigma_0.25"]


def test_known_table_by_hand(tmp_path):
    """As in the logs of the field: abstentions count, wrong classes count for nothing, R >= r."""
    rows = ["0\t3\t3\t0.25\t1\t1", "20\t7\t-1\t0.0\t0\t1", "40\t1\t2\t0.9\t0\t1", "60\t5\t5\t0.501\t1\t1"]
    (tmp_path / "log.tsv").write_text("\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *rows]) + "\n")
    found = gather([tmp_path / "log.tsv"])
    (row,) = compare(found.methods, (0.0, 0.25, 0.5, 0.75)).rows
    assert row.accuracy == (0.5, 0.5, 0.25, 0.0)
    assert row.abstention == 0.25
    assert any("rounded up" in note for note in found.notes)


# What is refused


def test_other_inputs_are_refused_with_what_differs(folder, tmp_path):
    ledger_file(tmp_path / "fewer.ledger", count=50)
    with pytest.raises(
        BadTable, match=r"fewer\.ledger is about other inputs .*, by id: 10 of .*one\.ledger it lacks"
    ) as found:
        gather([folder / "one.ledger", tmp_path / "fewer.ledger"])
    assert "(the first is toy/050)" in str(found.value)
    head, *lines = (folder / "theirs.tsv").read_text().splitlines()
    (tmp_path / "short.tsv").write_text("\n".join([head, *lines[:7], *lines[9:]]) + "\n")
    for files in ([folder / "one.ledger", tmp_path / "short.tsv"], [tmp_path / "short.tsv", folder / "one.ledger"]):
        with pytest.raises(
            BadTable, match=r"short\.tsv is about .* by the number in its id: 2 of .*one\.ledger it lacks .*first is 7"
        ):
            gather(files)


@pytest.mark.parametrize("step", [1, 20])
def test_of_a_table_with_more_inputs_those_of_the_ledger_are_taken(folder, tmp_path, step):
    """By their ids, if the ledger is of a selection: its positions are among the table's too, and mean other images."""
    names = [f"test/{step * i:05}" for i in range(50)]
    ledger_file(tmp_path / "fewer.ledger", count=50, names=names)
    head, *lines = (folder / "theirs.tsv").read_text().splitlines()
    rows = dict(enumerate(f"9\t9\t{line.split(chr(9), 3)[3]}" for line in lines * 20))  # another label: other images
    rows |= {step * i: line.partition("\t")[2] for i, line in enumerate(lines)}
    (tmp_path / "all.tsv").write_text("\n".join([head, *(f"{i}\t{row}" for i, row in sorted(rows.items()))]) + "\n")
    for files in ([tmp_path / "fewer.ledger", tmp_path / "all.tsv"], [tmp_path / "all.tsv", tmp_path / "fewer.ledger"]):
        found = gather(files, ["paper"])
        ours, theirs = found.methods["paper"].results, found.methods["all"].results
        assert len(ours) == 50
        np.testing.assert_array_equal(ours.label, theirs.label)
        assert theirs.index.tolist() == [step * i for i in range(50)]
        assert "all: 1150 inputs are not in fewer.ledger and are left out" in found.notes


def test_an_interval_does_not_depend_on_the_other_radii(folder):
    found = gather([folder / "one.ledger"], ["paper", "sigma-0.25"]).methods
    alone, among = (compare(found, radii, "sigma-0.25").rows[0] for radii in ((0.25,), (0.0, 0.1, 0.25, 0.5)))
    assert alone.name == among.name == "paper"
    assert alone.differences[0] == among.differences[2]


def test_a_table_may_number_its_inputs_as_the_ids_of_a_selection_do(folder, tmp_path):
    """As cifar10:subset: its positions are 0, 1, 2, ..., its ids test/00000, test/00020, test/00040, ..."""
    path = tmp_path / "subset.ledger"
    ledger_file(path, count=60, names=[f"test/{20 * i:05}" for i in range(60)])
    head, *lines = (folder / "theirs.tsv").read_text().splitlines()
    numbered = [f"{20 * i}\t{line.partition(chr(9))[2]}" for i, line in enumerate(lines)]
    (tmp_path / "numbered.tsv").write_text("\n".join([head, *numbered]) + "\n")
    for files in ([path, tmp_path / "numbered.tsv"], [tmp_path / "numbered.tsv", path]):
        found = gather(files, ["paper"])
        np.testing.assert_array_equal(found.methods["numbered"].results.label, found.methods["paper"].results.label)
        assert "inputs are matched by the numbers in their ids, as positions are those in a selection" in found.notes
    assert len(gather([path, folder / "theirs.tsv"], ["paper"]).methods) == 2  # positions still do


def test_other_labels_are_refused(folder, tmp_path):
    text = (folder / "theirs.tsv").read_text().replace("\n5\t1\t", "\n5\t3\t")
    (tmp_path / "other.tsv").write_text(text)
    with pytest.raises(BadTable, match=r"gives input 5 the label 3, .*one\.ledger the label 1: these are other data"):
        gather([folder / "one.ledger", tmp_path / "other.tsv"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "there is no file"),
        (b"", "is empty"),
        (b"not a table", "no column idx"),
        (b"\x00\xff\xfe\x00" * 10, "cannot be read as text"),
        (b"SQLite format 3\x00" + bytes(100), "cut short"),
    ],
    ids=["missing", "empty", "foreign text", "foreign bytes", "cut short"],
)
def test_foreign_files_are_refused(tmp_path, content, complaint):
    path = tmp_path / "odd.ledger"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((BadTable, LedgerError), match=complaint) as refusal:
        gather([path])
    assert "odd.ledger" in str(refusal.value)


def test_choosing_methods_needs_a_ledger_and_a_baseline_that_is_there(folder):
    with pytest.raises(BadSetting, match="no ledger among the files"):
        gather([folder / "theirs.tsv"], ["fusion"])
    with pytest.raises(BadSetting, match=r"no method 'best' to compare with; the methods are theirs"):
        compare(gather([folder / "theirs.tsv"]).methods, RADII, baseline="best")
    with pytest.raises(BadSetting, match="two methods are called"):
        gather([folder / "theirs.tsv", folder / "theirs.tsv"])


def test_a_ledger_without_labels_has_no_accuracy(tmp_path):
    ledger_file(tmp_path / "u.ledger", count=5, labelled=False)
    with pytest.raises(BadTable, match="inputs have no label"):
        compare(gather([tmp_path / "u.ledger"]).methods, RADII)


# As text


@pytest.fixture(scope="module")
def comparison(folder):
    return compare(gather([folder / "one.ledger", folder / "theirs.tsv"]).methods, RADII, baseline="sigma-0.5")


def test_csv_has_every_number_in_full(comparison):
    table = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert [line["method"] for line in table] == [row.name for row in comparison.rows]
    for line, row in zip(table, comparison.rows, strict=True):
        assert [float(line[f"accuracy at {r:g}"]) for r in RADII] == list(row.accuracy)
        assert line["mean votes"] == ("" if row.mean_votes is None else str(row.mean_votes))
        if row.differences:
            assert [float(line[f"low at {r:g}"]) for r in RADII] == [d.low for d in row.differences]
            assert line["baseline"] == "sigma-0.5"
        else:
            assert line["high at 0"] == line["baseline"] == ""


def test_markdown_is_two_tables_with_remarks(comparison):
    text = as_markdown(comparison)
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert [block.splitlines()[0].split(" | ")[0] for block in tables] == ["| method", "| minus sigma-0.5"]
    assert len({line.count("|") for line in tables[0].splitlines()}) == 1
    assert len(tables[0].splitlines()) == 2 + len(comparison.rows)
    assert re.search(r"\| multiscale +\|", text) or "| multiscale |" in text
    assert "- oracle: best sigma, told by the label. Guarantee: none" in text


def test_what_holds_of_several_is_said_once(folder):
    found = gather([folder / "one.ledger", folder / "two.ledger"], ["paper"])
    assert "one, two: the rule of the run is fusion, fixed before its votes" in found.notes
    told = [line for line in as_markdown(compare(found.methods)).splitlines() if "Guarantee" in line]
    assert len(told) == 1
    assert told[0].startswith("- one/paper, two/paper: dual, rule paper. Guarantee: wrong with")


def test_latex_is_escaped(comparison):
    text = as_latex(comparison)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert not re.search(r"(?<!\\)[%_#]", "\n".join(body))


def test_ten_thousand_inputs_take_a_moment():
    """The arithmetic of a comparison, without the reading of votes: eleven methods at eleven radii."""
    rng, n = np.random.default_rng(0), 10_000

    def method(name):
        results = Results(
            ids=np.arange(n).astype(str),
            index=np.arange(n),
            label=np.zeros(n, np.int64),
            prediction=rng.integers(-1, 2, n),
            radius=rng.random(n) * 2,
            seconds=np.ones(n),
        )
        return Derived(name, name, name, True, results, None, np.ones(n, np.int64))

    found = {name: method(name) for name in "abcdefghijk"}
    start = process_time()
    compare(found, baseline="a")
    assert process_time() - start < 2
