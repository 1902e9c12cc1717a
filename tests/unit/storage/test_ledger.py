import hashlib
import json
import math
import zlib
from dataclasses import replace

import numpy as np
import pytest
from storage_cases import a_header, a_unit, edit, finish, finished, look, names, one_stage_header, units_of

from dualrs.certificates import Certificate, Outcome
from dualrs.errors import ForeignLedger, LedgerError, UnusableVotes
from dualrs.schemes import DualVotes, rule
from dualrs.storage import Ledger, verify
from dualrs.votes import Part, SamplingPlan, Stage, Stream, Unit, Votes

CERTIFICATE = Certificate(3, 0.75, 0.5, 0.75, 0.8, "router", Outcome.CERTIFIED)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ledger"


@pytest.fixture
def ledger(path):
    with Ledger.create_or_resume(path, a_header()) as ledger:
        ledger.add_inputs([("a", 0, 1), ("b", 1, None)])
        yield ledger


def votes_equal(ours, theirs):
    return np.array_equal(ours.selection, theirs.selection) and np.array_equal(ours.estimation, theirs.estimation)


class TestLifeOfAFile:
    def test_header_comes_back(self, path):
        with Ledger.create_or_resume(path, a_header()):
            pass
        with Ledger.open(path) as ledger:
            assert ledger.header == a_header()
            assert ledger.header_damage is None

    def test_a_clean_close_leaves_one_single_file(self, path):
        finished(path)
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_the_same_run_resumes_and_keeps_the_first_header(self, path):
        finished(path, count=2)
        with Ledger.create_or_resume(path, a_header(command="again", versions={})) as ledger:
            assert ledger.header.command == "dualrs certify"
            assert ledger.concluded() == set(names(2))
            ledger.add_inputs([("toy/2", 2, None)])
            finish(ledger, ["toy/2"])
        with Ledger.open(path) as ledger:
            assert verify(ledger) == []
            assert ledger.concluded() == set(names(3))

    def test_another_run_is_refused_and_the_file_stays_as_it_is(self, path):
        before = finished(path).read_bytes()
        with pytest.raises(ForeignLedger, match=r"alpha is 0\.01 on record but 0\.001 was given.*another file name"):
            Ledger.create_or_resume(path, a_header(alpha=0.001))
        assert path.read_bytes() == before
        assert len(list(path.parent.iterdir())) == 1

    def test_resuming_is_refused_where_the_header_was_edited(self, path):
        finished(path)
        edit(path, "UPDATE header SET fields = replace(fields, 'dualrs certify', 'dualrs  certify')")
        with pytest.raises(LedgerError, match="the list of inputs or the state was changed by hand"):
            Ledger.create_or_resume(path, a_header())

    def test_an_empty_file_is_where_a_run_begins(self, path):
        path.touch()
        with pytest.raises(LedgerError, match="is empty"):
            Ledger.open(path)
        finished(path)
        with Ledger.open(path) as ledger:
            assert verify(ledger) == []

    def test_reading_changes_nothing(self, path):
        before = finished(path).read_bytes()
        with Ledger.open(path) as ledger:
            ledger.votes(names(6))
            verify(ledger)
            for write in (
                lambda: ledger.add_inputs([("z", 9, 0)]),
                lambda: ledger.record(*a_unit(a_header(), "toy/0")),
                lambda: ledger.conclude("toy/0", CERTIFICATE, 1.0),
            ):
                with pytest.raises(LedgerError, match="opened for reading"):
                    write()
        assert path.read_bytes() == before

    def test_others_read_what_is_committed_while_a_run_writes(self, ledger, path):
        unit, counts = a_unit(ledger.header, "a")
        ledger.commit()
        with Ledger.open(path) as reader:
            ledger.record(unit, counts)
            assert not reader.tally("a").holds(unit)
            ledger.commit()
            assert reader.tally("a").holds(unit)
            assert verify(reader) == []

    def test_concluding_an_input_again_is_nothing(self, ledger, path):
        finish(ledger, ["a"])
        ledger.commit()
        finish(ledger, ["a"])
        assert ledger.concluded() == {"a"}

    def test_a_run_without_votes_makes_room_for_another(self, path):
        with Ledger.create_or_resume(path, a_header()) as ledger:
            ledger.add_inputs([("a", 0, 1)])
        with Ledger.create_or_resume(path, a_header(alpha=0.001)) as ledger:
            assert ledger.header.alpha == 0.001
            assert ledger.inputs() == []

    def test_a_run_that_fails_before_its_first_vote_leaves_nothing(self, path):
        def failing():
            with Ledger.create_or_resume(path, a_header()) as ledger:
                ledger.add_inputs([("a", 0, 1)])
                raise RuntimeError

        with pytest.raises(RuntimeError):
            failing()
        assert list(path.parent.iterdir()) == []

    def test_a_snapshot_does_not_move(self, ledger, path):
        ledger.commit()
        with Ledger.open(path) as reader, reader.snapshot():
            assert reader.concluded() == set()
            finish(ledger, ["a"])
            ledger.commit()
            assert reader.concluded() == set()
            assert verify(reader) == []

    def test_closing_while_somebody_reads_loses_nothing(self, path):
        ledger = Ledger.create_or_resume(path, a_header())
        ledger.add_inputs([("a", 0, 1)])
        with Ledger.open(path) as reader:
            reader.inputs()
            ledger.close()
        with Ledger.open(path) as reader:
            assert [row.id for row in reader.inputs()] == ["a"]
        with Ledger.create_or_resume(path, a_header()):
            pass
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_closing_twice_is_closing_once(self, path):
        ledger = Ledger.create_or_resume(path, a_header())
        ledger.close()
        ledger.close()

    def test_an_exception_does_not_cost_what_was_recorded(self, path):
        unit, counts = a_unit(a_header(), "a")

        def interrupted():
            with Ledger.create_or_resume(path, a_header()) as ledger:
                ledger.add_inputs([("a", 0, 1)])
                ledger.record(unit, counts)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        with Ledger.open(path) as again:
            assert again.tally("a").holds(unit)

    @pytest.mark.parametrize("name", ["a b.ledger", "50%.ledger", "what?.ledger", "no#1.ledger", "é.ledger"])
    def test_odd_file_names(self, tmp_path, name):
        finished(tmp_path / name, count=1)
        with Ledger.open(str(tmp_path / name)) as ledger:
            assert verify(ledger) == []
        assert [p.name for p in tmp_path.iterdir()] == [name]


class TestInputs:
    def test_they_come_back_in_the_order_of_positions(self, ledger):
        ledger.add_inputs([("c", 5, 0), ("d", 3, np.int64(2))])
        assert ledger.inputs() == [("a", 0, 1), ("b", 1, None), ("d", 3, 2), ("c", 5, 0)]

    def test_adding_the_same_again_is_nothing(self, ledger):
        ledger.add_inputs([("a", 0, 1), ("b", 1, None)])
        assert len(ledger.inputs()) == 2

    @pytest.mark.parametrize("row", [("a", 0, 2), ("a", 1, 1), ("a", 0, None), ("b", 1, 0)], ids=str)
    def test_another_label_or_position_is_another_dataset(self, ledger, row):
        with pytest.raises(ForeignLedger, match=f"knows input {row[0]} at position"):
            ledger.add_inputs([row])

    def test_a_negative_label_is_refused(self, ledger):
        with pytest.raises(LedgerError, match="None if unknown"):
            ledger.add_inputs([("z", 9, -1)])


class TestVotes:
    def test_a_tally_comes_back_block_by_block(self, ledger):
        recorded = list(units_of(ledger.header, "a"))
        for unit, counts in recorded:
            ledger.record(unit, counts)
        tally = ledger.tally("a")
        for unit, counts in recorded:
            kept = tally.counts[unit.stream][unit.start]
            assert kept.dtype == np.int64
            assert np.array_equal(kept, counts.sum(axis=0))
        assert all(np.array_equal(dict(ledger.units())[unit], counts) for unit, counts in recorded)
        assert ledger.tally("b").counts == {}

    def test_votes_are_those_of_the_tallies_in_the_order_asked_for(self, path):
        ids = [names(6)[k] for k in (4, 0, 5)]
        finished(path)
        with Ledger.open(path) as ledger:
            votes = ledger.votes(ids)
            expected = ledger.header.scheme.gather([ledger.tally(i) for i in ids], ledger.header.plan)
        assert isinstance(votes, DualVotes)
        assert votes_equal(votes.router, expected.router)
        assert all(map(votes_equal, votes.experts, expected.experts))

    @pytest.mark.parametrize("name", ['say "x"', "a\\b", "é/ß", "tab\there", "[1,2]", "toy/1 ", ""])
    def test_odd_ids_are_sealed_and_read_like_others(self, path, name):
        with Ledger.create_or_resume(path, a_header()) as ledger:
            ledger.add_inputs([(name, 0, 0), ("toy/1", 1, 0)])
            finish(ledger, [name, "toy/1"])
            assert verify(ledger) == []
            one, other = ledger.votes([name, "toy/1"]).router.estimation
            assert np.array_equal(one, ledger.votes([name]).router.estimation[0])
            assert np.array_equal(other, ledger.votes(["toy/1"]).router.estimation[0])

    def test_seals_are_those_of_the_format(self, path):
        """As docs/file-formats.md has them, so that ledgers written by any version are read by any other."""
        finished(path)
        fingerprint = look(path, "SELECT fingerprint FROM header")[0][0]
        for *content, packed, seal in look(path, "SELECT * FROM votes"):
            text = json.dumps(["votes", *content], separators=(",", ":"))
            whole = fingerprint.encode() + text.encode() + zlib.decompress(packed)
            assert seal == hashlib.blake2b(whole, digest_size=8).hexdigest()

    def test_votes_of_more_inputs_than_one_query_takes(self, path):
        header = one_stage_header(n=100, n0=10)
        finished(path, header, count=1203)
        with Ledger.open(path) as ledger:
            votes = ledger.votes(names(1203))
        assert isinstance(votes, Votes)
        assert votes.sampled.tolist() == [100] * 1203

    def test_no_inputs_are_no_votes(self, ledger):
        assert len(ledger.votes([])) == 0

    def test_sigma_is_kept_exactly(self, path):
        sigma = 0.1 + 0.2
        header = one_stage_header(sigmas=(sigma,))
        finished(path, header, count=1)
        with Ledger.open(path) as ledger:
            assert {s.sigma for s in ledger.tally("toy/0").counts} == {sigma}

    def test_the_same_unit_again_is_nothing(self, ledger):
        unit, counts = a_unit(ledger.header, "a")
        ledger.record(unit, counts)
        ledger.record(unit, counts.astype(np.int32))
        assert np.array_equal(ledger.tally("a").counts[unit.stream][unit.start], counts.sum(axis=0))

    def test_other_counts_of_the_same_unit_are_refused(self, ledger):
        unit, counts = a_unit(ledger.header, "a")
        ledger.record(unit, counts)
        with pytest.raises(LedgerError, match=r"input a, selection votes 0 to 50 of router at sigma 1\.0.*other votes"):
            ledger.record(unit, counts[:, ::-1])
        assert np.array_equal(ledger.tally("a").counts[unit.stream][unit.start], counts.sum(axis=0))

    @pytest.mark.parametrize("bounds", [(0, 500), (500, 1000), (900, 1900), (0, 2300)], ids=str)
    def test_units_which_overlap_never_count_twice(self, ledger, bounds):
        stream = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)
        full = np.array([[60, 10, 10, 10, 10]])
        ledger.record(Unit("a", stream, 0, 1000), np.repeat(full, 10, axis=0))
        with pytest.raises(LedgerError, match="holds other votes"):
            ledger.record(Unit("a", stream, *bounds), np.repeat(full, (bounds[1] - bounds[0]) // 100, axis=0))

    def test_a_crooked_unit_is_refused(self, ledger):
        good = np.array([[50, 0, 0]])
        stream = Stream(Stage.ROUTER, Part.SELECTION, 1.0)
        bad = {
            "sums to 49": (Unit("a", stream, 0, 50), good - [[1, 0, 0]]),
            "negative": (Unit("a", stream, 0, 50), np.array([[51, -1, 0]])),
            "wraps": (Unit("a", stream, 0, 50), np.array([[50 + 256, -256, 0]])),
            "shape": (Unit("a", stream, 0, 50), np.array([[50, 0]])),
            "float": (Unit("a", stream, 0, 50), good.astype(float)),
            "past the plan": (Unit("a", stream, 0, 60), np.array([[60, 0, 0]])),
            "not at a block": (Unit("a", stream, 10, 50), np.array([[40, 0, 0]])),
            "empty": (Unit("a", stream, 0, 0), np.zeros((0, 3), dtype=int)),
            "sigma": (Unit("a", replace(stream, sigma=0.5), 0, 50), good),
        }
        for unit, counts in bad.values():
            with pytest.raises(UnusableVotes):
                ledger.record(unit, counts)
        assert ledger.tally("a").counts == {}

    def test_an_unknown_input_is_refused(self, ledger):
        with pytest.raises(LedgerError, match="no input z"):
            ledger.record(*a_unit(ledger.header, "z"))
        with pytest.raises(LedgerError, match="no input z"):
            ledger.conclude("z", CERTIFICATE, 1.0)

    def test_votes_of_a_concluded_input_are_final(self, ledger):
        units = list(units_of(ledger.header, "a"))
        for unit, counts in units[:-1]:
            ledger.record(unit, counts)
        ledger.conclude("a", CERTIFICATE, 1.0)
        ledger.record(*units[0])  # known, so nothing
        with pytest.raises(LedgerError, match="concluded"):
            ledger.record(*units[-1])

    def test_unfinished_votes_are_refused_by_name_of_the_plan(self, ledger):
        unit, counts = a_unit(replace(ledger.header, n=1000), "a", Stage.CLASS)
        ledger.record(Unit("a", replace(unit.stream, part=Part.ESTIMATION), 0, 100), counts[:1] * 2)
        with pytest.raises(UnusableVotes, match="where the plan has"):
            ledger.votes(["a"])

    def test_first_unit(self, ledger):
        recorded = dict(units_of(ledger.header, "b"))
        stream = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)
        assert ledger.first_unit(stream) is None
        for unit, counts in recorded.items():
            ledger.record(unit, counts)
        unit, counts = ledger.first_unit(stream)
        assert unit.stream == stream
        assert np.array_equal(counts, recorded[unit])

    def test_edited_votes_are_not_used(self, path):
        finished(path)
        edit(path, "UPDATE votes SET stop = stop - 100 WHERE input = 'toy/1' AND start = 1000")
        with Ledger.open(path) as ledger:
            ledger.votes(["toy/0"])
            for read in (lambda: ledger.votes(["toy/0", "toy/1"]), lambda: ledger.tally("toy/1")):
                with pytest.raises(LedgerError, match="input toy/1"):
                    read()


class TestCertificates:
    def test_they_come_back_as_they_were(self, path):
        finished(path)
        with Ledger.open(path) as ledger:
            derived = rule("fusion").certify(ledger.votes(names(6)), 0.01)
            kept = ledger.certificates()
        assert list(kept) == names(6)
        assert [c.certificate for c in kept.values()] == list(derived)
        assert {(c.seconds, c.units) for c in kept.values()} == {(1.5, 4 + 4 * 3)}

    @pytest.mark.parametrize("r", [math.inf, -math.inf, -0.25, 5e-324, 1 / 3], ids=str)
    def test_every_real_number_survives(self, ledger, path, r):
        certificate = replace(CERTIFICATE, r_sigma=r, r_c=-r, outcome=Outcome.CLASS_UNDECIDED, prediction=-1)
        ledger.conclude("a", certificate, 0.1)
        ledger.commit()
        with Ledger.open(path) as again:
            assert again.certificates()["a"].certificate == certificate

    def test_nan_is_refused(self, ledger):
        with pytest.raises(LedgerError, match="NaN"):
            ledger.conclude("a", replace(CERTIFICATE, r_c=math.nan), 1.0)

    def test_the_same_again_is_nothing_another_is_refused(self, ledger):
        ledger.conclude("a", CERTIFICATE, 1.0)
        ledger.conclude("a", CERTIFICATE, 2.0)
        assert ledger.certificates()["a"].seconds == 1.0
        with pytest.raises(LedgerError, match=r"input a.*another certificate"):
            ledger.conclude("a", replace(CERTIFICATE, radius=0.7), 1.0)
        assert ledger.concluded() == {"a"}


class TestAbsorb:
    def test_shards_make_the_whole_run(self, tmp_path):
        whole = finished(tmp_path / "whole", count=6)
        parts = [finished(tmp_path / f"part{k}", count=3, first=3 * k) for k in (0, 1)]
        edit(whole, "DELETE FROM inputs")  # written by `finished` with labels that depend on the first input
        with Ledger.create_or_resume(tmp_path / "sum", a_header()) as total:
            for part in parts:
                with Ledger.open(part) as shard:
                    total.absorb(shard)
                    total.absorb(shard)  # twice is once
            assert verify(total) == []
        for table in ("votes", "certificates"):
            assert look(tmp_path / "sum", f"SELECT * FROM {table}") == look(whole, f"SELECT * FROM {table}")

    def test_another_run_is_no_shard(self, tmp_path):
        other = finished(tmp_path / "other", a_header(seed=8))
        with Ledger.create_or_resume(tmp_path / "sum", a_header()) as total, Ledger.open(other) as shard:
            with pytest.raises(ForeignLedger, match="seed is 7 on record but 8 was given"):
                total.absorb(shard)
            assert total.inputs() == []

    def test_all_or_nothing(self, tmp_path):
        finished(tmp_path / "sum", count=1)
        part = finished(tmp_path / "part", count=3, first=1)
        edit(part, "UPDATE votes SET seal = 'x' WHERE input = 'toy/3' AND start = 1000")
        with Ledger.create_or_resume(tmp_path / "sum", a_header()) as total:
            with Ledger.open(part) as shard, pytest.raises(LedgerError, match="toy/3"):
                total.absorb(shard)
            assert [row.id for row in total.inputs()] == ["toy/0"]
            total.add_inputs([("toy/1", 1, 0)])  # what was undone is forgotten too
            finish(total, ["toy/1"])
            assert verify(total) == []


def test_plan_of_the_cases_has_units_of_several_lengths():
    assert [u.votes for u in SamplingPlan(50, 2300).units("a", Stream(Stage.CLASS, Part.ESTIMATION, 0.5))] == [
        1000,
        1000,
        300,
    ]


class TestVotesOfAnotherRun:
    OTHERS = (Stream(Stage.CLASS, Part.ESTIMATION, 0.25), Stream(Stage.CLASS, Part.SELECTION, 0.25))
    VOTES = 50 + 2300  # of these streams, on one input

    def test_some_streams_are_copied_under_seals_of_this_run(self, path, tmp_path):
        other = finished(tmp_path / "other", a_header(alpha=0.1), count=4)
        with Ledger.create_or_resume(path, a_header()) as ledger, Ledger.open(other) as earlier:
            ledger.add_inputs((name, i, i % 5) for i, name in enumerate(names(6)[2:], 2))
            assert ledger.take_over(earlier, self.OTHERS) == 2 * self.VOTES
            assert ledger.take_over(earlier, self.OTHERS) == 0
            assert ledger.sampled(self.OTHERS[0]) == {"toy/2", "toy/3"}
            assert ledger.sampled(Stream(Stage.CLASS, Part.ESTIMATION, 0.5)) == set()
        with Ledger.open(path) as ledger, Ledger.open(other) as earlier:
            assert verify(ledger) == []
            assert ledger.concluded() == set()
            (ours, *_), (theirs, *_) = (some.votes(["toy/2", "toy/3"]).experts for some in (ledger, earlier))
            assert votes_equal(ours, theirs)
        seals = [look(p, "SELECT seal FROM votes WHERE input = 'toy/2' AND sigma = 0.25") for p in (path, other)]
        assert not set(seals[0]) & set(seals[1])

    def test_all_or_none(self, path, tmp_path):
        other = finished(tmp_path / "other", a_header(alpha=0.1))
        edit(other, "UPDATE votes SET seal = 'x' WHERE input = 'toy/5'")
        with Ledger.create_or_resume(path, a_header()) as ledger:
            ledger.add_inputs((name, i, i % 5) for i, name in enumerate(names(6)))
            with Ledger.open(other) as earlier, pytest.raises(LedgerError, match="other: input toy/5"):
                ledger.take_over(earlier, self.OTHERS)
            ledger.record(*a_unit(ledger.header, "toy/0"))  # of use still
        assert look(path, "SELECT count(*) FROM inputs") == [(6,)]
        assert look(path, "SELECT count(*) FROM votes") == [(1,)]

    def test_votes_that_differ_from_those_here_are_refused(self, path, tmp_path):
        other = finished(tmp_path / "other", a_header(alpha=0.1), count=2)
        with Ledger.create_or_resume(path, a_header()) as ledger:
            ledger.add_inputs((name, i, i % 5) for i, name in enumerate(names(2)))
            unit, counts = next(f for f in units_of(ledger.header, "toy/1", seed=9) if f[0].stream == self.OTHERS[0])
            ledger.record(unit, counts)
            with Ledger.open(other) as earlier, pytest.raises(LedgerError, match="holds other votes there"):
                ledger.take_over(earlier, self.OTHERS)
        assert look(path, "SELECT count(*) FROM votes") == [(1,)]

    def test_complete_inputs_have_every_planned_vote(self, path):
        with Ledger.create_or_resume(path, a_header(rule="labels", sigma_e=None)) as ledger:
            ledger.add_inputs((name, 9 - i, 0) for i, name in enumerate(names(3)))
            for name in names(3):
                *units, last = units_of(ledger.header, name)
                for unit, counts in units:
                    ledger.record(unit, counts)
                if name != "toy/1":
                    ledger.record(*last)
            assert ledger.complete() == ["toy/2", "toy/0"]
