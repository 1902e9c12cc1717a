"""verify against sabotage: each edit behind the ledger's back is found, and named."""

import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from storage_cases import a_header, edit, finish, finished, look, names, one_stage_header, units_of

from dualrs.errors import ForeignLedger
from dualrs.schemes import rule
from dualrs.storage import Ledger, verify
from dualrs.storage.rows import Concluded, InputRow
from dualrs.votes import Stage

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("ledgers") / "run.ledger")


@pytest.fixture
def path(pristine, tmp_path):
    return Path(shutil.copy(pristine, tmp_path / "run.ledger"))


def problems(path):
    with Ledger.open(path) as ledger:
        return verify(ledger)


@pytest.mark.parametrize("name", ["cohen", "paper", "paper-1:4", "nosplit", "fusion", "fusion-pair"])
def test_an_untouched_ledger_has_no_problems(tmp_path, name):
    header = one_stage_header() if name == "cohen" else a_header(rule=name)
    assert problems(finished(tmp_path / "run.ledger", header)) == []


def test_an_unfinished_ledger_has_no_problems(tmp_path):
    path = tmp_path / "run.ledger"
    with Ledger.create_or_resume(path, a_header()) as ledger:
        assert verify(ledger) == []
        ledger.add_inputs((name, i, None) for i, name in enumerate(names(3)))
        finish(ledger, names(1))
        for unit, counts in list(units_of(ledger.header, "toy/1"))[3:7]:
            ledger.record(unit, counts)
        assert verify(ledger) == []
    assert problems(path) == []


def test_votes_that_no_certificate_needs_may_be_missing(tmp_path):
    """Under fusion, experts which cannot help are not sampled."""
    header = a_header(rule="nosplit")
    with Ledger.create_or_resume(tmp_path / "run.ledger", header) as ledger:
        ledger.add_inputs([("toy/0", 0, 0)])
        for unit, counts in units_of(header, "toy/0"):
            if unit.stream.stage is Stage.ROUTER or unit.stream.sigma == 0.25:
                ledger.record(unit, counts)
        ledger.conclude("toy/0", rule("nosplit").certify(ledger.votes(["toy/0"]), 0.01)[0], 1.0)
        assert ledger.certificates()["toy/0"].certificate.sigma_c == 0.25
        assert verify(ledger) == []


ONE_UNIT = "input = 'toy/2' AND stage = 'class' AND part = 'estimation' AND sigma = 0.5 AND start = 1000"


def flip(path, change):
    (packed,) = look(path, f"SELECT counts FROM votes WHERE {ONE_UNIT}")[0]
    counts = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).copy()
    change(counts)
    edit(path, f"UPDATE votes SET counts = ? WHERE {ONE_UNIT}", zlib.compress(counts.tobytes(), 1))


def test_one_flipped_vote(path):
    def one_vote_more_for_the_winner(counts):
        counts[0] += 1
        counts[np.flatnonzero(counts[1:5])[0] + 1] -= 1

    flip(path, one_vote_more_for_the_winner)
    (problem,) = problems(path)
    assert problem == (
        "input toy/2, estimation votes 1000 to 2000 of class at sigma 0.5: "
        "the counts or their address were changed: the seal does not match"
    )


def test_one_bit_of_a_count(path):
    flip(path, lambda counts: counts.__setitem__(3, counts[3] ^ 1))
    (problem,) = problems(path)
    assert problem.startswith("input toy/2, estimation votes 1000 to 2000 of class at sigma 0.5")


def test_counts_that_cannot_be_unpacked(path):
    edit(path, f"UPDATE votes SET counts = x'00112233' WHERE {ONE_UNIT}")
    (problem,) = problems(path)
    assert "input toy/2" in problem
    assert "cannot be read" in problem


def test_counts_that_unpack_to_a_flood(path):
    edit(path, f"UPDATE votes SET counts = ? WHERE {ONE_UNIT}", zlib.compress(bytes(10**7)))
    assert "input toy/2" in problems(path)[0]


def test_a_changed_radius_is_named_with_both_values(path):
    edit(path, "UPDATE certificates SET radius = 2.5 WHERE input = 'toy/3'")
    seal, value = problems(path)
    assert seal == "input toy/3: its certificate was changed: the seal does not match"
    assert value.startswith("input toy/3: radius is recorded as 2.5, but is ")


@pytest.mark.parametrize(
    ("column", "value"),
    [("prediction", 4), ("sigma_c", 0.3), ("r_sigma", 9.0), ("r_c", 9.0), ("limited_by", "x"), ("outcome", "certain")],
)
def test_any_other_field_of_a_certificate(path, column, value):
    edit(path, f"UPDATE certificates SET {column} = ? WHERE input = 'toy/3'", value)
    found = problems(path)
    assert any(p.startswith(f"input toy/3: {column} is recorded as {value}, but is") for p in found)
    assert all(p.startswith("input toy/3") for p in found)


@pytest.mark.parametrize("change", ["seconds = 99", "units = units - 1", "seal = ''"])
def test_what_stands_beside_a_certificate(path, change):
    edit(path, f"UPDATE certificates SET {change} WHERE input = 'toy/3'")
    assert "input toy/3: its certificate was changed: the seal does not match" in problems(path)


def forge_radius(path, factor):
    """Change a radius and seal it anew, as one who knows the seals could; the input, and the radius."""
    with Ledger.open(path) as ledger:
        name, kept = next((i, c) for i, c in ledger.certificates().items() if c.certificate.radius > 0)
        radius = kept.certificate.radius * factor
        forged = Concluded(replace(kept.certificate, radius=radius), kept.seconds, kept.units)
        row = ledger.rows.of_certificate(name, forged)
    edit(path, f"REPLACE INTO certificates VALUES ({','.join('?' * len(row))})", *row)
    return name, radius


@pytest.mark.parametrize("factor", [1 + 1e-8, 1 - 1e-8])
def test_a_forged_radius_with_a_good_seal_does_not_follow_from_the_votes(path, factor):
    name, radius = forge_radius(path, factor)
    (problem,) = problems(path)
    assert problem.startswith(f"input {name}: radius is recorded as {radius}, but is ")


def test_the_last_bits_of_a_radius_may_differ(path):
    forge_radius(path, 1 + 1e-12)
    assert problems(path) == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [('"alpha":0.01', '"alpha":0.02'), ('"seed":7', '"seed":8'), ('"rule":"fusion"', '"rule":"nosplit"')],
)
def test_a_changed_header(path, ours, theirs):
    edit(path, "UPDATE header SET fields = replace(fields, ?, ?)", ours, theirs)
    assert problems(path) == [
        "header: a field that decides votes or certificates was changed after the run began",
        "certificates were not derived again: the header no longer says by which rule",
    ]


def test_other_damage_is_found_beside_a_changed_header(path):
    edit(path, "UPDATE header SET fields = replace(fields, '\"alpha\":0.01', '\"alpha\":0.02')")
    edit(path, "UPDATE inputs SET label = 4 WHERE id = 'toy/1'")
    assert any("input toy/1" in p for p in problems(path))


@pytest.mark.parametrize("change", ["fields = replace(fields, '2025', '2024')", "seal = 'x'"])
def test_a_changed_remark_in_the_header(path, change):
    edit(path, f"UPDATE header SET {change}")
    assert problems(path)[0] == (
        "header: a remark (versions, command, created), the list of inputs or the state was changed by hand"
    )


def test_a_changed_fingerprint(path):
    edit(path, "UPDATE header SET fingerprint = 'ff'")
    assert problems(path)[0].startswith("header: a field that decides")


def test_a_removed_row_of_votes(path):
    edit(path, f"DELETE FROM votes WHERE {ONE_UNIT}")
    assert problems(path) == ["input toy/2: its certificate rests on 16 units of votes, but 15 are here"]


def test_a_certificate_without_votes(path):
    edit(path, "DELETE FROM votes WHERE input = 'toy/2'")
    assert problems(path) == ["input toy/2: its certificate rests on 16 units of votes, but 0 are here"]


def test_a_certificate_which_never_had_votes(tmp_path, path):
    with Ledger.open(path) as ledger:
        certificate = ledger.certificates()["toy/0"].certificate
    with Ledger.create_or_resume(tmp_path / "other", a_header()) as ledger:
        ledger.add_inputs([("a", 0, 0)])
        ledger.conclude("a", certificate, 1.0)
        assert verify(ledger) == ["input a: it has a certificate but no votes"]


def test_a_certificate_concluded_too_early(tmp_path, path):
    with Ledger.open(path) as ledger:
        certificate = ledger.certificates()["toy/0"].certificate
    with Ledger.create_or_resume(tmp_path / "other", a_header()) as ledger:
        ledger.add_inputs([("toy/0", 0, 0), ("toy/1", 1, 0)])
        units = list(units_of(ledger.header, "toy/0"))
        for unit, counts in units[:-1]:
            ledger.record(unit, counts)
        ledger.conclude("toy/0", certificate, 1.0)
        finish(ledger, ["toy/1"])
        assert verify(ledger) == ["input toy/0: it has 2000 of 2300 estimation votes of class at sigma 1.0"]


def test_an_input_from_whose_votes_nothing_follows_is_isolated(tmp_path, path):
    with Ledger.open(path) as ledger:
        certificate = ledger.certificates()["toy/0"].certificate
    with Ledger.create_or_resume(tmp_path / "other", a_header()) as ledger:
        ledger.add_inputs([("toy/0", 0, 0), ("toy/1", 1, 0)])
        for unit, counts in units_of(ledger.header, "toy/0"):
            if unit.stream.stage is Stage.CLASS:
                ledger.record(unit, counts)
        ledger.conclude("toy/0", certificate, 1.0)
        finish(ledger, ["toy/1"])
        assert verify(ledger) == [
            "input toy/0: nothing follows from its votes: has no selection votes at sigma 1",
        ]


def test_a_changed_label(path):
    edit(path, "UPDATE inputs SET label = 3 WHERE id = 'toy/4'")
    assert problems(path) == [
        "input toy/4: its position (4) or its label (3) was changed: the seal does not match",
    ]


def test_a_removed_label(path):
    edit(path, "UPDATE inputs SET label = NULL WHERE id = 'toy/4'")
    assert "input toy/4" in problems(path)[0]


def test_a_removed_input(path):
    edit(path, "DELETE FROM inputs WHERE id = 'toy/4'")
    assert problems(path) == [
        "input toy/4: the header lists it, and it is not among the inputs",
        "input toy/4: it has votes or a certificate but is not among the inputs",
    ]


def test_an_input_removed_from_all_tables(path):
    for table, column in (("inputs", "id"), ("votes", "input"), ("certificates", "input")):
        edit(path, f"DELETE FROM {table} WHERE {column} = 'toy/4'")
    assert problems(path) == ["input toy/4: the header lists it, and it is not among the inputs"]


def test_a_removed_certificate(path):
    edit(path, "DELETE FROM certificates WHERE input = 'toy/4'")
    assert problems(path) == ["input toy/4: the run was complete, and now it has no certificate"]


def test_an_input_that_the_run_does_not_have(path):
    with Ledger.open(path) as ledger:
        row = ledger.rows.of_input(InputRow("toy/99", 99, 0))
    edit(path, "INSERT INTO inputs VALUES (?, ?, ?, ?)", *row)
    assert problems(path) == ["input toy/99: the header does not list it"]


@pytest.mark.parametrize("change", ["state = 'open'", "inputs = x'00'", "inputs = 7"])
def test_a_changed_list_or_state_in_the_header(path, change):
    edit(path, f"UPDATE header SET {change}")
    assert problems(path)[0].startswith("header: a remark (versions, command, created), the list of inputs or")


def test_a_run_that_is_not_done_has_no_problem(path):
    """What a killed run lacks, it has not lost; whoever resumes it makes it complete."""
    with Ledger.create_or_resume(path, a_header()) as ledger:
        ledger.add_inputs([("toy/77", 77, 0)])
    assert problems(path) == []
    with Ledger.open(path) as ledger:
        assert not ledger.done
    with Ledger.create_or_resume(path, a_header()) as ledger:
        finish(ledger, ["toy/77"])
    with Ledger.open(path) as ledger:
        assert ledger.done
    edit(path, "DELETE FROM certificates WHERE input = 'toy/77'")
    assert problems(path) == ["input toy/77: the run was complete, and now it has no certificate"]


def test_an_input_that_was_removed_stays_on_the_list_of_a_run_that_goes_on(path):
    edit(path, "DELETE FROM inputs WHERE id = 'toy/4'")
    with Ledger.create_or_resume(path, a_header()) as ledger:
        ledger.add_inputs([("toy/77", 77, 0)])
    assert "input toy/4: the header lists it, and it is not among the inputs" in problems(path)


def test_a_ledger_of_format_one_is_verified_without_a_list(tmp_path):
    """Committed before inputs were listed: read, and no vote is added to it."""
    path = Path(shutil.copy(FIXTURES / "first-noise-aces.ledger", tmp_path / "old.ledger"))
    with Ledger.open(path) as ledger:
        assert (ledger.header.format, ledger.listed) == (1, [])
        header = ledger.header
        assert verify(ledger) == []
    before = path.read_bytes()
    with pytest.raises(ForeignLedger, match=r"an earlier version of dualrs.* its votes are not mixed with new ones"):
        Ledger.create_or_resume(path, replace(header, format=2, noise="integer-gaussian philox-4x64 2"))
    with (
        Ledger.create_or_resume(tmp_path / "new.ledger", a_header()) as new,
        Ledger.open(path) as old,
        pytest.raises(ForeignLedger, match="an earlier version of dualrs"),
    ):
        new.absorb(old)
    assert path.read_bytes() == before


def test_votes_moved_to_another_input(path):
    edit(path, "DELETE FROM votes WHERE input = 'toy/1'")
    edit(path, "UPDATE votes SET input = 'toy/1' WHERE input = 'toy/2'")
    found = problems(path)
    assert sum("input toy/1" in p for p in found) == 16
    assert any(p.startswith("input toy/2: its certificate rests on") for p in found)


def test_a_row_of_another_run(path, tmp_path):
    other = finished(tmp_path / "other", a_header(seed=8))
    row = look(other, "SELECT * FROM votes WHERE input = 'toy/1' LIMIT 1")[0]
    edit(path, f"REPLACE INTO votes VALUES ({','.join('?' * len(row))})", *row)
    (problem,) = problems(path)
    assert problem.startswith("input toy/1")


def test_votes_recorded_twice_under_other_addresses(path):
    with Ledger.open(path) as ledger:
        unit, counts = ledger.rows.unit(look(path, f"SELECT * FROM votes WHERE {ONE_UNIT}")[0])
        row = ledger.rows.of_unit(type(unit)(unit.input_id, unit.stream, 1100, 2000), counts[1:])
    edit(path, f"INSERT INTO votes VALUES ({','.join('?' * len(row))})", *row)
    assert any("recorded twice" in p and "input toy/2" in p for p in problems(path))


def test_all_problems_are_listed_at_once(path):
    edit(path, "UPDATE certificates SET radius = radius + 1 WHERE input = 'toy/0' OR input = 'toy/5'")
    edit(path, f"DELETE FROM votes WHERE {ONE_UNIT}")
    edit(path, "UPDATE inputs SET label = 3 WHERE id = 'toy/4'")
    text = "\n".join(problems(path))
    for name in ("toy/0", "toy/2", "toy/4", "toy/5"):
        assert f"input {name}" in text
    for name in ("toy/1", "toy/3"):
        assert f"input {name}" not in text


def test_a_rule_that_nobody_knows(tmp_path):
    with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
        ledger.add_inputs([InputRow("toy/0", 0, 0)])
        finish(ledger, ["toy/0"])
        object.__setattr__(ledger.header, "rule", "oracle")
        (problem,) = verify(ledger)
    assert "unknown rule 'oracle'" in problem
