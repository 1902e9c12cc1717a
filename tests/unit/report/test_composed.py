"""ACES from the logs of its parts: known by hand, and refused where they do not fit."""

import pytest
from peer_tables import write_aces, write_lines

from dualrs.errors import BadSetting, BadTable
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.compare import compare, gather
from dualrs.report.composed import read_composed
from dualrs.report.given import Given


@pytest.fixture
def parts(tmp_path):
    return write_aces(tmp_path)


def test_the_smaller_radius_of_both(parts):
    found = read_composed(parts).results
    assert found.index.tolist() == [0, 20, 40, 60, 80, 100, 120, 140]
    assert found.prediction.tolist() == [3, 7, -1, 7, 9, 1, -1, -1]
    assert found.radius.tolist() == [0.373, 0.6, 0, 0, 0, 0, 0, 0]
    # At 0 also what the core answers (60), and where both agree (100); beyond it the certifier alone (0).
    assert certified_accuracy(found, (0.0, 0.01, 0.373, 0.4)).tolist() == [3 / 8, 1 / 8, 1 / 8, 0]


def test_the_selector_limits_it_too(parts):
    parts[0].write_text(parts[0].read_text().replace("0\t1\t0.947\t1", "0\t1\t0.2\t1", 1))
    assert read_composed(parts).results.radius[0] == 0.2


def test_without_a_core_nothing_is_claimed_of_its_inputs(parts):
    found = read_composed(parts[:2])
    assert found.results.prediction.tolist() == [3, 7, -1, -1, -1, -1, -1, -1]
    assert any(note.startswith("2 inputs go to the core network, of which there is no log") for note in found.notes)


def test_where_the_authors_count_more_it_is_said(parts):
    """Their script takes an abstaining selector (-1) for one that chose the certifier, at radius 0."""
    assert any(
        note.startswith("1 inputs, on which the selector abstains and the core network does not say what the certifier")
        for note in read_composed(parts).notes
    )


def test_the_order_of_rows_does_not_matter_and_more_of_them_are_left_out(parts):
    expected = read_composed(parts).results
    head, *lines = parts[0].read_text().splitlines()
    write_lines(parts[0], head, "999\t1\t0.5\t1\t1", *reversed(lines))
    assert read_composed(parts).results.radius.tolist() == expected.radius.tolist()


def test_beside_its_own_certifier(parts):
    found = gather([Given(parts, "aces"), parts[1], Given(parts[:2])])
    rows = {row.name: row for row in compare(found.methods, (0.0, 0.3)).rows}
    assert list(rows) == ["aces", "run_certification", "run_selection_0.50"]
    assert rows["aces"].accuracy == (3 / 8, 1 / 8)
    assert rows["run_certification"].accuracy[1] > rows["aces"].accuracy[1]
    assert "1 - alpha for both radii together if each holds with 1 - alpha/2" in rows["aces"].guarantee
    assert "aces, run_selection_0.50: its selector: columns that are not used: unperturbed predict" in found.notes


# What is refused


def test_a_selector_without_certifier(parts):
    with pytest.raises(BadTable, match=r"run_selection_0.50, line 1: no column label .* as SELECTOR,CERTIFIER"):
        gather([parts[0]])
    with pytest.raises(BadTable, match=r"lanet_core_prediction, line 1: no column radius"):
        read_composed((parts[0], parts[2]))


def test_too_many_files(parts):
    with pytest.raises(BadTable, match=r"these are 4 files, and those of one method are SELECTOR,CERTIFIER or"):
        read_composed((*parts, parts[2]))


def test_another_order(parts):
    with pytest.raises(BadTable, match=r"run_certification predicts 2, and a selector names 1, .*; it comes first"):
        read_composed((parts[1], parts[1]))


@pytest.mark.parametrize("place", [0, 2])
def test_other_inputs(parts, place):
    head, *lines = parts[place].read_text().splitlines()
    write_lines(parts[place], head, *lines[:1], *lines[3:])
    with pytest.raises(BadTable, match=rf"{parts[place].name} is about other inputs .*: 2 of them .* first is 20"):
        read_composed(parts)


def test_other_labels(parts):
    parts[2].write_text(parts[2].read_text().replace("\n20\t8", "\n20\t7"))
    with pytest.raises(
        BadTable, match=r"core_prediction gives input 20 the label 7, .* the label 8: these are other data"
    ):
        read_composed(parts)


def test_no_fixed_sigma(parts):
    with pytest.raises(BadSetting, match=r"logs of one method, and no fixed sigma; leave out @0.5"):
        gather([Given(parts, "aces", 0.5)])
