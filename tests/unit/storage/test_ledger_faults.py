"""Ledgers that meet full disks, damage, strangers and each other: always a sentence, never a sqlite3 traceback."""

import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from storage_cases import a_header, a_unit, edit, finish, finished, look, names, units_of

from dualrs.errors import DualrsError, LedgerBusy, LedgerError
from dualrs.storage import Ledger, database, derive, rows, verify


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("ledgers") / "run.ledger", count=4)


@pytest.fixture
def path(pristine, tmp_path):
    return Path(shutil.copy(pristine, tmp_path / "run.ledger"))


def resume(path):
    return Ledger.create_or_resume(path, a_header())


def contents(path):
    """What a ledger says; the last bits of a compressed stream may say nothing."""
    votes = [(*row[:6], zlib.decompressobj().decompress(row[6]), row[7]) for row in look(path, "SELECT * FROM votes")]
    return [votes, *(look(path, f"SELECT * FROM {table}") for table in ("header", "inputs", "certificates"))]


def examine(path, open_=Ledger.open):
    """What one hears about a file: problems, or the one sentence that refuses it."""
    try:
        with open_(path) as ledger:
            problems = verify(ledger)
            try:
                ledger.votes(names(4))
                ledger.certificates()
                ledger.inputs()
            except DualrsError as error:
                return [*problems, str(error)]
            return problems
    except LedgerError as error:
        return [str(error)]


class TestNotALedger:
    def test_missing(self, tmp_path):
        with pytest.raises(LedgerError, match="there is no ledger"):
            Ledger.open(tmp_path / "none")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("open_", [Ledger.open, resume])
    def test_a_folder(self, tmp_path, open_):
        with pytest.raises(LedgerError, match="is a folder"):
            open_(tmp_path)

    @pytest.mark.parametrize("content", [b"x", b"idx\tlabel\n" * 100, bytes(4096), b"SQLite format"], ids=repr)
    @pytest.mark.parametrize("open_", [Ledger.open, resume])
    def test_some_other_file_is_refused_and_left_alone(self, tmp_path, content, open_):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(LedgerError, match="is not a ledger"):
            open_(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == content

    @pytest.mark.parametrize("open_", [Ledger.open, resume])
    def test_an_sqlite_file_of_something_else_is_refused_and_left_alone(self, tmp_path, open_):
        edit(tmp_path / "file", "CREATE TABLE header (fingerprint, fields, seal)")
        before = (tmp_path / "file").read_bytes()
        with pytest.raises(LedgerError, match="not a ledger of dualrs"):
            open_(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == before

    def test_a_ledger_of_a_later_format(self, path):
        edit(path, "PRAGMA user_version = 9")
        with pytest.raises(LedgerError, match="format 9"):
            Ledger.open(path)

    def test_no_folder_to_write_in(self, tmp_path):
        with pytest.raises(LedgerError, match="there is no folder"):
            Ledger.create_or_resume(tmp_path / "no" / "run.ledger", a_header())


class TestDamage:
    def test_cut_short_anywhere(self, pristine, tmp_path):
        content = pristine.read_bytes()
        rng = random.Random(0)
        offsets = {1, 15, 16, 17, 50, 99, 100, 101, 511, 512, 4095, 4096, 4097, len(content) - 1}
        for offset in sorted(offsets | {rng.randrange(len(content)) for _ in range(150)}):
            path = tmp_path / "cut.ledger"
            path.write_bytes(content[:offset])
            assert examine(path), f"cut at {offset} of {len(content)} and nobody noticed"
            assert examine(path, resume), f"cut at {offset} of {len(content)} and resumed as if nothing were missing"
            for file in tmp_path.iterdir():
                file.unlink()

    def test_bytes_overwritten_anywhere(self, pristine, tmp_path):
        content = pristine.read_bytes()
        rng = random.Random(1)
        noticed = 0
        for _ in range(300):
            spoiled = bytearray(content)
            start = rng.randrange(len(content))
            length = rng.choice([1, 1, 1, 8, 200, 5000])
            spoiled[start : start + length] = rng.randbytes(len(spoiled[start : start + length]))
            path = tmp_path / "spoiled.ledger"
            path.write_bytes(spoiled)
            heard = examine(path)
            noticed += bool(heard)
            assert heard or contents(path) == contents(pristine), f"{length} bytes at {start}: changed and not noticed"
            path.unlink()
        assert noticed > 100  # the rest fell on bytes that SQLite does not use

    def test_rows_that_claim_to_have_gigabytes(self, pristine, tmp_path):
        """SQLite wants memory for some of them, and what the module sqlite3 then raises is no error of its own."""
        content = pristine.read_bytes()
        for found in re.finditer(rb"toy/[0-3]classestimation", content):
            for start in range(found.start() - 12, found.start()):  # sizes of the row and of its columns
                path = tmp_path / "spoiled.ledger"
                path.write_bytes(content[:start] + b"\xff" * 200 + content[start + 200 :])
                with Ledger.open(path) as ledger:
                    assert verify(ledger)

    def test_no_memory_for_a_query(self, path):
        def greedy():
            raise MemoryError

        with Ledger.open(path) as ledger:
            ledger.database._connection.create_function("greedy", 0, greedy)
            with pytest.raises(LedgerError, match=r"asks for more memory than there is: free some; .* restore a copy"):
                list(ledger.database.rows("SELECT greedy()"))

    def test_a_write_ahead_log_cut_short_gives_an_earlier_state(self, tmp_path):
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
            ledger.add_inputs((name, i, 0) for i, name in enumerate(names(4)))
            for name in names(4):
                finish(ledger, [name])
                ledger.commit()
            for file in tmp_path.iterdir():
                if not file.name.endswith("-shm"):
                    shutil.copy(file, tmp_path / file.name.replace("run", "copy"))
        log = tmp_path / "copy.ledger-wal"
        content = log.read_bytes()
        lengths = set()
        for fraction in (0, 0.01, 0.3, 0.6, 0.999, 1):
            log.write_bytes(content[: int(fraction * len(content))])
            with Ledger.open(tmp_path / "copy.ledger") as ledger:
                assert verify(ledger) == []
                lengths.add(len(ledger.concluded()))
        assert {0, 4} < lengths

    @pytest.mark.parametrize("table", ["header", "inputs", "votes", "certificates"])
    def test_a_table_is_gone(self, path, table):
        edit(path, f"DROP TABLE {table}")
        assert any("lacks a part of a ledger" in problem for problem in examine(path))

    @pytest.mark.parametrize("open_", [Ledger.open, resume])
    @pytest.mark.parametrize(
        ("table", "column"), [("header", "state"), ("inputs", "label"), ("votes", "stop"), ("certificates", "r_c")]
    )
    @pytest.mark.parametrize("change", ["ADD COLUMN more TEXT", "DROP COLUMN @", "RENAME COLUMN @ TO other"])
    def test_a_table_has_other_columns(self, path, table, column, change, open_):
        edit(path, f"ALTER TABLE {table} {change.replace('@', column)}")
        with pytest.raises(LedgerError, match=f"the columns of its table {table} are .*, not .*{column}"):
            open_(path)

    @pytest.mark.parametrize("rows", ["DELETE FROM header", "INSERT INTO header SELECT * FROM header"])
    def test_no_header_or_two(self, path, rows):
        edit(path, rows)
        with pytest.raises(LedgerError, match="headers where a ledger has one"):
            Ledger.open(path)

    @pytest.mark.parametrize("value", [None, 3, b"\xff\xfe", "{}"], ids=repr)
    def test_a_header_which_is_not_one(self, path, value):
        edit(path, "CREATE TABLE other AS SELECT * FROM header")
        edit(path, "DROP TABLE header")
        edit(path, "ALTER TABLE other RENAME TO header")
        edit(path, "UPDATE header SET fields = ?", value)
        with pytest.raises(LedgerError, match="damaged or was edited"):
            Ledger.open(path)

    @pytest.mark.parametrize(
        ("table", "column"),
        [
            *(("header", c) for c in ("fingerprint", "fields", "inputs", "state", "seal")),
            *(("inputs", c) for c in ("id", "position", "label", "seal")),
            *(("votes", c) for c in ("input", "stage", "part", "sigma", "start", "stop", "counts", "seal")),
            *(("certificates", c) for c in ("input", "prediction", "radius", "r_c", "outcome", "units", "seal")),
        ],
    )
    @pytest.mark.parametrize("value", ["nonsense", b"\xff\xfe", -1, 1.5, 10**15], ids=repr)
    def test_any_value_in_any_column_is_a_problem_and_no_crash(self, path, table, column, value):
        key = "id" if table == "inputs" else "input"
        more = "AND stage = 'class' AND part = 'estimation' AND sigma = 0.5 AND start = 1000" * (table == "votes")
        where = "" if table == "header" else f"WHERE {key} = 'toy/1' {more}"
        assert edit(path, f"UPDATE {table} SET {column} = ? {where}", value) == 1
        assert examine(path)

    def test_ids_of_several_kinds(self, path):
        edit(path, "UPDATE inputs SET id = x'FF' WHERE id = 'toy/1'")
        edit(path, "UPDATE inputs SET id = 'other' WHERE id = 'toy/2'")
        assert any("the header does not list it" in problem for problem in examine(path))

    def test_text_that_is_not_utf8_hides_nothing_else(self, path):
        edit(path, "UPDATE certificates SET limited_by = CAST(x'FFFE' AS TEXT) WHERE input = 'toy/1'")
        edit(path, "UPDATE certificates SET radius = 9 WHERE input = 'toy/3'")
        problems = "\n".join(examine(path))
        assert "input toy/1" in problems
        assert "input toy/3" in problems


def sealed(path, inputs):
    """Put a list of inputs into the header, packed, with a seal that fits it, as one who knows the seals could."""
    with Ledger.open(path) as ledger:
        raw = zlib.decompress(inputs)
        seal = ledger.rows.seal("header", ledger.header.to_json(), "done", raw=raw)
    edit(path, "UPDATE header SET inputs = ?, seal = ?", inputs, seal)


class TestSealedAnew:
    """Seals are no signature: a row with a good one may hold anything, and still nobody crashes."""

    @pytest.mark.parametrize("open_", [Ledger.open, resume])
    @pytest.mark.parametrize(
        "text",
        [
            *("", "3", '"ab"', "{}", "[3]", '["abc"]', '[["toy/0", 0]]', "[[null, 0, 0]]", '[["toy/0", "0", 0]]'),
            *('[["toy/0", 0, [0]]]', f'[["toy/0", {10**400}, 0]]', f'[["toy/0", {"9" * 5000}, 0]]'),
            *('[["\\ud800", 0, 0]]', "[" * 100_000),
        ],
        ids=lambda text: text[:20],
    )
    def test_a_list_that_is_none(self, path, text, open_):
        sealed(path, zlib.compress(text.encode()))
        assert any("the list of inputs is not one" in problem for problem in examine(path, open_))

    @pytest.mark.parametrize(
        "change", ["position = 1.5", "position = 'x'", "label = 1e308", "label = -3", "label = ''"]
    )
    def test_an_input_whose_numbers_are_none(self, path, change):
        edit(path, f"UPDATE inputs SET {change} WHERE id = 'toy/1'")
        with Ledger.open(path) as ledger:
            (row,) = look(path, "SELECT id, position, label FROM inputs WHERE id = 'toy/1'")
            edit(path, "UPDATE inputs SET seal = ? WHERE id = 'toy/1'", ledger.rows.seal("inputs", *row))
            assert any("is not a whole number" in problem for problem in verify(ledger))
            with pytest.raises(LedgerError, match=r"input toy/1: .* is not a whole number"):
                derive(ledger)

    @pytest.mark.parametrize("change", ["outcome = 'x'", "prediction = 1.5", "radius = 'wide'", "limited_by = x'FF'"])
    def test_a_certificate_that_is_none(self, path, change):
        edit(path, f"UPDATE certificates SET {change} WHERE input = 'toy/1'")
        with Ledger.open(path) as ledger:
            (row,) = look(path, "SELECT * FROM certificates WHERE input = 'toy/1'")
            seal = ledger.rows.seal("certificates", *row[:-1])
            edit(path, "UPDATE certificates SET seal = ? WHERE input = 'toy/1'", seal)
            assert any("holds what no certificate does" in problem for problem in verify(ledger))
            with pytest.raises(LedgerError, match="input toy/1: its certificate holds what no certificate does"):
                ledger.certificates()


class TestListThatUnpacksToAFlood:
    def test_it_is_not_unpacked(self, path, monkeypatch):
        monkeypatch.setattr(rows, "_FREE", 10**4)
        sealed(path, zlib.compress(b" " * 10**8 + b"[]"))  # unpacked, it would fit its seal
        assert any("the list of inputs" in problem for problem in examine(path))

    def test_a_flood_is_left_where_it_begins(self, path, monkeypatch):
        """However much is packed behind: reading all that its length would allow took seconds and a gigabyte."""
        given, made = [], zlib.decompressobj

        class Counting:
            def __init__(self):
                self.inner = made()

            def decompress(self, *some):
                given.append(self.inner.decompress(*some))
                return given[-1]

            def __getattr__(self, name):
                return getattr(self.inner, name)

        monkeypatch.setattr(rows, "_FREE", 10**6)
        flood = zlib.compress(bytes(10**8))  # 100 kB, which would make room for 20 MB
        edit(path, "UPDATE header SET inputs = ?", flood)
        monkeypatch.setattr(rows.zlib, "decompressobj", Counting)
        with Ledger.open(path) as ledger:
            assert "the list of inputs" in ledger.header_damage
        assert sum(map(len, given)) < 10**7

    @pytest.mark.parametrize("piece", [1, 2, 100, 10**6])
    def test_pieces_of_any_size_make_one_list(self, monkeypatch, piece):
        monkeypatch.setattr(rows, "_PIECE", piece)
        raw = rows._encode([[f"toy/{i}", i, i % 7] for i in range(2000)]).encode()
        packed = rows._packed(raw)
        assert rows._unpacked(packed) == rows._unpacked(packed + b"more") == raw
        for spoiled in (b"", packed[:1], packed[:-1]):
            with pytest.raises(zlib.error, match="cut short"):
                rows._unpacked(spoiled)

    def test_a_list_that_packs_well_at_first_is_read_again(self, monkeypatch):
        monkeypatch.setattr(rows, "_FREE", 10**4)
        monkeypatch.setattr(rows, "_PIECE", 100)
        raw = b"x" * 10**6 + random.Random(0).randbytes(10**5)  # as a whole, it is not too long
        assert len(raw) < 10**4 + 200 * len(zlib.compress(raw))
        assert rows._unpacked(rows._packed(raw)) == raw

    def test_a_long_list_of_like_names_is_read_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(rows, "_FREE", 10**4)
        like = [("x" * 20_000 + str(i), i, None) for i in range(20)]
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
            ledger.add_inputs(like)
        with Ledger.open(tmp_path / "run.ledger") as ledger:
            assert ledger.listed == like

    def test_a_usual_list(self):
        packer = rows.Rows(a_header(), a_header().fingerprint)
        inputs = [rows.InputRow(f"imagenet/train/{i:07}", i, i % 1000) for i in range(10**5)]
        assert packer.listed(packer.of_header(inputs, rows.OPEN)[2]) == inputs


class TestNoRoom:
    def test_a_full_database_keeps_what_was_committed(self, tmp_path):
        path = tmp_path / "run.ledger"
        ledger = Ledger.create_or_resume(path, a_header())
        ledger.add_inputs((name, i, 0) for i, name in enumerate(names(200)))
        ledger.commit()
        pages = next(ledger.database.rows("PRAGMA page_count"))[0]
        ledger.database.execute(f"PRAGMA max_page_count = {pages + 8}")
        done = []

        def fill():
            with ledger:
                for name in names(200):
                    for unit, counts in units_of(ledger.header, name):
                        ledger.record(unit, counts)
                    ledger.commit()
                    done.append(name)

        with pytest.raises(LedgerError, match=r"no room left.*committed before is kept"):
            fill()
        assert 0 < len(done) < 200
        with Ledger.create_or_resume(path, a_header()) as again:
            for name in done:
                for unit, _ in units_of(again.header, name):
                    assert again.tally(name).holds(unit)
            assert again.tally(names(200)[len(done)]).counts == {}
            finish(again, names(200))
            assert verify(again) == []

    def test_after_a_failure_nothing_more_is_written(self, tmp_path):
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
            pages = next(ledger.database.rows("PRAGMA page_count"))[0]
            ledger.database.execute(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(LedgerError, match="no room left"):
                ledger.add_inputs((f"a long name {i}" * 50, i, 0) for i in range(1000))
            ledger.database.execute("PRAGMA max_page_count = 100000")
            with pytest.raises(LedgerError, match="open it again"):
                ledger.add_inputs([("a", 0, 0)])
        with Ledger.open(tmp_path / "run.ledger") as ledger:
            assert ledger.inputs() == []

    @pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
    def test_a_limit_on_file_size(self, tmp_path):
        script = """
            import sys
            from storage_cases import a_header, finish, names
            from dualrs.errors import LedgerError
            from dualrs.storage import Ledger
            try:
                with Ledger.create_or_resume("run.ledger", a_header()) as ledger:
                    ledger.add_inputs((name, i, 0) for i, name in enumerate(names(200)))
                    ledger.commit()
                    for name in names(200):
                        finish(ledger, [name])
                        ledger.commit()
            except LedgerError as error:
                print(error)
                sys.exit(2)
        """
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        )
        assert (run.returncode, run.stderr) == (2, "")
        assert "committed before is kept" in run.stdout
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
            assert verify(ledger) == []
            assert 0 < len(ledger.concluded()) < 200
            finish(ledger, [n for n in names(200) if n not in ledger.concluded()])


class TestSeveralProcesses:
    def test_a_second_writer_is_refused_at_once(self, tmp_path):
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as first:
            with pytest.raises(LedgerBusy, match=f"another process .number {os.getpid()}. is writing"):
                Ledger.create_or_resume(tmp_path / "run.ledger", a_header())
            first.add_inputs([("a", 0, 0)])
            finish(first, ["a"])
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as second:
            assert second.concluded() == {"a"}

    def test_a_stranger_who_writes_is_met_with_a_sentence(self, tmp_path, monkeypatch):
        """Some other SQLite tool that holds the file knows of no lease."""
        monkeypatch.setattr(database, "PATIENCE", 0.05)
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as first:
            first.add_inputs([("a", 0, 0)])
            first.commit()
            with closing(sqlite3.connect(tmp_path / "run.ledger", isolation_level=None)) as stranger:
                stranger.execute("BEGIN IMMEDIATE")
                with pytest.raises(LedgerError, match="another process is writing"):
                    first.record(*a_unit(first.header, "a"))
                stranger.execute("ROLLBACK")

    def test_a_writer_killed_while_founding_leaves_nothing_in_the_way(self, tmp_path):
        """A rollback journal beside an unfinished file: SQLite undoes it, and the run begins anew."""
        script = """
            import os, sqlite3
            from dualrs.storage.database import SCHEMA, APPLICATION
            connection = sqlite3.connect("run.ledger", isolation_level=None)
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            for table in SCHEMA:
                connection.execute(table)
            for i in range(3000):  # spills to disk before the commit that never comes
                connection.execute("INSERT INTO header VALUES (?, ?, ?, ?, ?)", (str(i) * 50, "x", b"", "open", "y"))
            os.kill(os.getpid(), 9)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, check=False)
        assert (tmp_path / "run.ledger").stat().st_size > 0
        assert (tmp_path / "run.ledger-journal").exists()
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path / "run.ledger")
        finished(tmp_path / "run.ledger", count=1)
        assert examine(tmp_path / "run.ledger") == []

    def test_a_killed_run_can_be_read_without_touching_its_file(self, tmp_path):
        script = """
            import os
            from storage_cases import a_header, finish, names
            from dualrs.storage import Ledger
            ledger = Ledger.create_or_resume("run.ledger", a_header())
            ledger.add_inputs((name, i, 0) for i, name in enumerate(names(4)))
            finish(ledger, names(3))
            ledger.commit()
            finish(ledger, names(4)[3:])
            os.kill(os.getpid(), 9)
        """
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
            check=False,
        )
        before = (tmp_path / "run.ledger").read_bytes()
        with Ledger.open(tmp_path / "run.ledger") as ledger:
            assert ledger.concluded() == set(names(3))
            assert verify(ledger) == []
        assert (tmp_path / "run.ledger").read_bytes() == before
        with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
            finish(ledger, names(4)[3:])
            assert verify(ledger) == []
        assert [p.name for p in tmp_path.iterdir()] == ["run.ledger"]


def test_an_unforeseen_complaint_of_sqlite_is_a_sentence_too(path):
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="cannot be used"):
        list(ledger.database.rows("SELECT ?", ()))
