"""What routing could give, from tables of several sigmas: known by hand, simulated, and refused."""

from itertools import product

import numpy as np
import pytest
from compared_ledgers import ledger_file
from peer_tables import GAUSSIAN, HEAD, write_lines, write_sigmas

from dualrs.errors import BadSetting, BadTable
from dualrs.report.accuracy import certified
from dualrs.report.compare import compare, gather
from dualrs.report.given import Given
from dualrs.report.methods import methods
from dualrs.report.tables import as_csv, as_markdown
from dualrs.report.whatif import FixedSigmas
from dualrs.storage import Ledger

RADII = (0.0, 0.5, 1.0, 2.0)


@pytest.fixture
def tables(tmp_path):
    return write_sigmas(tmp_path)


def given(tables, name=""):
    return [Given((path,), name, sigma) for sigma, path in tables.items()]


def rows_of(files, **more):
    return {row.name: row for row in compare(gather(files).methods, RADII, **more).rows}


def test_oracle_envelope_and_routers_by_hand(tables):
    rows = rows_of(given(tables))
    routers = ["router-0.5", "router-0.7", "router-0.9"]
    assert list(rows) == ["sigma-0.25", "sigma-0.5", "sigma-1", "oracle", "envelope", *routers]
    assert rows["sigma-0.5"].accuracy == (0.75, 0.5, 0, 0)
    assert rows["oracle"].accuracy == (0.75, 0.75, 0.25, 0)
    assert rows["oracle"].abstention == 0.25
    assert rows["envelope"].accuracy == (0.75, 0.5, 0.25, 0)
    # The two sigmas that are not the best hit 4 of 8 times at radius 0, and 2 of 8 times at 0.5.
    assert rows["router-0.5"].accuracy == pytest.approx(
        (0.5 * 3 / 4 + 0.5 * 4 / 8, 0.5 * 3 / 4 + 0.5 * 2 / 8, 1 / 8, 0)
    )
    radii = [0.9412, 0.8123, 1.1231], [0.6, 0.3 + 0.6, 0.3]
    assert rows["router-0.7"].average_radius == pytest.approx(0.7 * sum(radii[0]) / 4 + 0.3 * sum(radii[1]) / 8)
    for name in ("oracle", "envelope", *routers):
        assert rows[name].guarantee.startswith("none: ")
        assert rows[name].mean_votes is None


def test_a_router_that_is_always_right_is_the_oracle(tables):
    rows = rows_of(given(tables), routers=(1.0, 1.0, 0.0))
    assert rows["router-1"].accuracy == rows["oracle"].accuracy
    assert rows["router-1"].average_radius == rows["oracle"].average_radius
    assert [name for name in rows if name.startswith("router")] == ["router-1", "router-0"]


def test_expectations_are_those_of_a_router_that_is_drawn(tables):
    """Every outcome of the draw, weighted: three inputs with three sigmas each have 27."""
    found = gather(given(tables)).methods
    fixed = FixedSigmas.among(found.values())
    hits = np.stack([certified(results, RADII) for results in fixed.results])  # (sigmas, radii, inputs)
    best = np.searchsorted(fixed.sigmas, found["oracle"].results.sigma_c)
    for accuracy in (0.2, 0.7):
        expected = np.zeros(len(RADII))
        for named in product(range(3), repeat=4):
            chance = np.prod([accuracy if k == b else (1 - accuracy) / 2 for k, b in zip(named, best, strict=True)])
            expected += chance * hits[list(named), :, range(4)].mean(axis=0)
        np.testing.assert_allclose(fixed.routed(RADII, accuracy), expected)


def test_what_is_needed_reaches_the_envelope_and_no_more(tables):
    comparison = compare(gather(given(tables)).methods, RADII)
    (choice,) = comparison.choices
    assert choice.best == {0.25: 1, 0.5: 1, 1.0: 1}
    assert choice.needed[3] is None
    envelope = next(row for row in comparison.rows if row.name == "envelope").accuracy
    fixed = FixedSigmas.among(gather(given(tables)).methods.values())
    for place, needed in enumerate(choice.needed[:3]):
        assert 0 <= needed <= 1
        assert fixed.routed(RADII, needed)[place] == pytest.approx(envelope[place])
    assert choice.needed[2] == 1  # at radius 1 one sigma alone certifies anything


def test_tables_in_words(tables):
    comparison = compare(gather(given(tables, "cohen")).methods, RADII)
    text = as_markdown(comparison)
    assert "| best sigma | 0.25 | 0.5 | 1 | none |\n| --- | ---: | ---: | ---: | ---: |\n" in text
    assert "| cohen: % of inputs | 25.0 | 25.0 | 25.0 | 25.0 |" in text
    assert "| needed at | 0 | 0.5 | 1 | 2 |" in text
    assert "| cohen: accuracy % | 100.0 | 50.0 | 100.0 | – |" in text
    assert "votes mean" not in text  # nobody knows
    assert "cohen/router-0.5, cohen/router-0.7, cohen/router-0.9: names the best sigma so often" in text
    assert "cohen/router-0.9," in as_csv(comparison)


def test_sets_of_two_projects_have_an_oracle_each(tables, tmp_path):
    (tmp_path / "other").mkdir()
    other = write_sigmas(tmp_path / "other")
    del other[0.25]
    rows = rows_of(
        [*given(tables, "cohen"), *given(other, "catrs"), write_lines(tmp_path / "a.tsv", HEAD, *GAUSSIAN[1])]
    )
    names = ["cohen/sigma-0.25", "cohen/sigma-0.5", "cohen/sigma-1", "catrs/sigma-0.5", "catrs/sigma-1", "a"]
    assert list(rows)[:8] == [*names, "cohen/oracle", "catrs/oracle"]
    assert rows["cohen/oracle"].average_radius == pytest.approx((0.9412 + 0.8123 + 1.1231) / 4)
    assert rows["catrs/oracle"].average_radius == pytest.approx((0.6 + 0.8123 + 1.1231) / 4)
    assert {"cohen/router-0.5", "catrs/router-0.5", "cohen/envelope", "catrs/envelope"} < set(rows)


def test_a_column_says_the_same_as_the_command(tables, tmp_path):
    by_command = rows_of(given(tables))
    (tmp_path / "column").mkdir()
    paths = write_sigmas(tmp_path / "column", column=True)
    assert rows_of(list(paths.values())) == by_command
    assert rows_of(given(paths)) == by_command  # twice, and they agree
    named = rows_of([Given((path,), "cohen") for path in paths.values()])
    assert named["cohen/oracle"].accuracy == by_command["oracle"].accuracy


def test_beside_a_ledger_tables_have_a_name_and_routers_are_asked_for(tmp_path):
    path = tmp_path / "run.ledger"
    ledger_file(path, count=4)
    with Ledger.open(path) as ledger:
        label = methods(ledger, ["paper"])["paper"].results.label.tolist()
    tables = {
        sigma: write_lines(
            tmp_path / f"{sigma}.tsv", HEAD, *(f"{i}\t{y}\t{y}\t{sigma}\t1\t1" for i, y in enumerate(label))
        )
        for sigma in (0.25, 0.75)
    }
    files = [path, *given(tables)]
    plain, asked = rows_of(files), rows_of(files, routers=[0.7])
    assert {"sigma-0.25", "tables/sigma-0.25", "oracle", "tables/oracle", "envelope", "tables/envelope"} < set(plain)
    assert not any("router" in name for name in plain)
    assert asked.keys() - plain.keys() == {"router-0.7", "tables/router-0.7"}
    assert asked["oracle"] == plain["oracle"]


def test_the_oracle_of_claims_about_the_input_alone(tmp_path):
    """A radius that was rounded to 0 counts at radius 0, for the oracle as for its sigma."""
    files = [
        Given((write_lines(tmp_path / "a", HEAD, "0\t3\t3\t0.0\t1\t1", "1\t3\t3\t0.0\t1\t1"),), "", 0.25),
        Given((write_lines(tmp_path / "b", HEAD, "0\t3\t3\t0.4\t1\t1", "1\t3\t-1\t0.0\t0\t1"),), "", 0.5),
    ]
    assert rows_of(files)["oracle"].accuracy[:2] == (1, 0)


# What is refused


def test_a_sigma_twice(tables):
    with pytest.raises(BadSetting, match=r"sigma 0.5 stands twice: .*noise_0.5.tsv and .*noise_1.tsv; leave one out"):
        gather([Given((tables[0.5],), "", 0.5), Given((tables[1.0],), "", 0.5)])
    assert len(gather([Given((tables[0.5],), "a", 0.5), Given((tables[1.0],), "b", 0.5)]).methods) == 2


def test_a_sigma_missing(tables):
    with pytest.raises(
        BadSetting, match=r"noise_1.tsv has no sigma, and other tables of a have one; write a@SIGMA=FILE"
    ):
        gather([Given((tables[0.5],), "a", 0.5), Given((tables[1.0],), "a")])


def test_a_sigma_that_the_table_denies(tmp_path):
    paths = write_sigmas(tmp_path, column=True)
    with pytest.raises(BadSetting, match=r"noise_1.tsv has sigma 1 in its column, and not 0.5"):
        gather([Given((paths[1.0],), "", 0.5)])


def test_a_ledger_knows_its_sigmas(tmp_path):
    ledger_file(tmp_path / "run.ledger", count=4)
    with pytest.raises(BadSetting, match=r"run.ledger is a ledger, which knows its sigmas; leave out @0.5"):
        gather([Given((tmp_path / "run.ledger",), "", 0.5)])


def test_other_inputs(tables, tmp_path):
    other = write_lines(tmp_path / "other.tsv", HEAD, *GAUSSIAN[0.5][:2], "7\t1\t1\t0.3\t1\t1", GAUSSIAN[0.5][3])
    with pytest.raises(BadTable, match=r"other.tsv is about other inputs than .*noise_0.25.tsv.* it lacks"):
        gather([Given((tables[0.25],), "", 0.25), Given((other,), "", 0.5)])


@pytest.mark.parametrize("accuracy", [-0.1, 1.5, float("nan")])
def test_no_accuracy(tables, accuracy):
    with pytest.raises(BadSetting, match="the accuracy of a router lies between 0 and 1"):
        rows_of(given(tables), routers=[accuracy])


def test_nothing_to_choose_from(tables):
    with pytest.raises(BadSetting, match="a router chooses among sigmas, and there are not several"):
        rows_of([tables[0.5]], routers=[0.5])
    assert list(rows_of([tables[0.5]])) == ["noise_0.5"]
