"""Edits of ledgers behind their backs, by SQL: values of other types, rows and tables removed, repeated or changed.

Enters: the path of a ledger and randomness. Leaves: the ledger changed, words for what was done, and whether seals were
computed anew. Seals are no signature: whoever computes them anew may make a ledger say anything, so of such a ledger
nothing is asked but that it is read, or refused, in an orderly way.
"""

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from dualrs.storage.header import Header
from dualrs.storage.rows import Rows
from soak.texts import edited_json

TABLES = ("header", "inputs", "votes", "certificates")
VALUES: tuple[Any, ...] = (
    *(
        None,
        0,
        -1,
        1,
        2,
        7,
        10**15,
        2**63 - 1,
        -(2**63),
        0.0,
        -0.0,
        0.25,
        0.5,
        1.0,
        1.5,
        1e308,
        float("inf"),
        float("-inf"),
    ),
    *(
        float("nan"),
        "",
        "nonsense",
        "ü",
        "\0",
        "x" * 70_000,
        "router",
        "class",
        "estimation",
        "certified",
        "done",
        "open",
    ),
    *(b"", b"\xff\xfe", bytes(1000), zlib.compress(b""), zlib.compress(bytes(300)), zlib.compress(bytes(10**6))),
)
SCHEMA = (
    *("PRAGMA user_version = 1", "PRAGMA user_version = 2", "PRAGMA user_version = 3", "PRAGMA user_version = -1"),
    *("PRAGMA application_id = 0", "PRAGMA journal_mode = WAL", "PRAGMA page_size = 1024", "VACUUM"),
    *("DROP TABLE @T@", "DELETE FROM @T@", "ALTER TABLE @T@ ADD COLUMN more TEXT", "ALTER TABLE @T@ DROP COLUMN @C@"),
    *("ALTER TABLE @T@ RENAME COLUMN @C@ TO other", "ALTER TABLE @T@ RENAME TO other", "CREATE TABLE more (a, b, c)"),
    "CREATE VIEW another AS SELECT * FROM @T@",
    "CREATE TABLE copied AS SELECT * FROM @T@; DROP TABLE @T@; ALTER TABLE copied RENAME TO @T@",
    "CREATE TABLE copied AS SELECT * FROM @T@; DROP TABLE @T@; CREATE VIEW @T@ AS SELECT * FROM copied",
    "INSERT INTO @T@ SELECT * FROM @T@",
)


def edited_ledger(path: Path, rng: Random) -> tuple[str, bool]:
    """One or several edits; what was done, and whether seals were computed anew."""
    anew = rng.random() < 0.25
    edits = _SEALED_ANEW if anew else (_bomb,) if rng.random() < 0.003 else _EDITS
    done = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for _ in range(rng.choice((1, 1, 2, 3))):
            with suppress(Exception):  # after the edits before it, this one cannot be made
                done.append(rng.choice(edits)(connection, rng))
    return "; ".join(done) or "no edit was possible", anew


def _value(connection: sqlite3.Connection, rng: Random) -> str:
    """Any value in any column of some rows."""
    table = rng.choice(TABLES)
    column = rng.choice(_columns(connection, table))
    value = rng.choice(VALUES)
    where, key = _some_rows(connection, table, rng)
    connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {where}", (value, *key))
    return f"{table}.{column} = {repr(value)[:40]} {where}"


def _bomb(connection: sqlite3.Connection, rng: Random) -> str:
    """Something that unpacks into more than there is room for."""
    table, column = rng.choice((("header", "inputs"), ("votes", "counts")))
    where, key = _some_rows(connection, table, rng)
    connection.execute(f"UPDATE {table} SET {column} = ? {where}", (bomb(), *key))
    return f"{table}.{column} is a bomb {where}"


def _another_row(connection: sqlite3.Connection, rng: Random) -> str:
    """A value taken from another row of its column."""
    table = rng.choice(TABLES)
    column = rng.choice(_columns(connection, table))
    where, key = _some_rows(connection, table, rng)
    (value,) = rng.choice(connection.execute(f"SELECT {column} FROM {table}").fetchall())
    connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {where}", (value, *key))
    return f"{table}.{column} of another row {where}"


def _without(connection: sqlite3.Connection, rng: Random) -> str:
    """Rows removed."""
    table = rng.choice(TABLES[1:])
    where, key = _some_rows(connection, table, rng)
    connection.execute(f"DELETE FROM {table} {where}", key)
    return f"no rows of {table} {where}"


def _input_gone(connection: sqlite3.Connection, rng: Random) -> str:
    """All that is known of an input removed, from some of the tables."""
    (name,) = rng.choice(connection.execute("SELECT id FROM inputs").fetchall())
    tables = rng.sample(TABLES[1:], rng.randint(1, 3))
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE {'id' if table == 'inputs' else 'input'} = ?", (name,))
    return f"input {name} is gone from {', '.join(tables)}"


def _schema(connection: sqlite3.Connection, rng: Random) -> str:
    table = rng.choice(TABLES)
    script = rng.choice(SCHEMA).replace("@T@", table).replace("@C@", rng.choice(_columns(connection, table)))
    for statement in script.split(";"):
        connection.execute(statement)
    return script


def _header_field(connection: sqlite3.Connection, rng: Random) -> str:
    """The JSON of the header edited, under its old seal."""
    (text,) = connection.execute("SELECT fields FROM header").fetchone()
    edited, what = edited_json(text, rng)
    connection.execute("UPDATE header SET fields = ?", (edited,))
    return f"header: {what}"


def _counts(connection: sqlite3.Connection, rng: Random) -> str:
    """One block of votes changed, under its old seal."""
    where, key = _some_rows(connection, "votes", rng, one=True)
    (packed,) = connection.execute(f"SELECT counts FROM votes {where}", key).fetchone()
    raw = bytearray(zlib.decompress(packed))
    raw[rng.randrange(len(raw))] = rng.randrange(256)
    connection.execute(f"UPDATE votes SET counts = ? {where}", (zlib.compress(bytes(raw)), *key))
    return f"votes {where}: other counts"


def _resealed_header(connection: sqlite3.Connection, rng: Random) -> str:
    """The JSON of the header edited; fingerprint and seal say that it was always so, and no other seal does."""
    text, listing = connection.execute("SELECT fields, inputs FROM header").fetchone()
    edited, what = edited_json(text, rng)
    with suppress(Exception):  # no header at all
        header = Header.from_json(edited)
        seal = Rows(header, header.fingerprint).seal("header", edited, "done", raw=zlib.decompress(listing))
        connection.execute("UPDATE header SET fingerprint = ?, seal = ?", (header.fingerprint, seal))
    connection.execute("UPDATE header SET fields = ?", (edited,))
    return f"header, sealed anew: {what}"


def _resealed_list(connection: sqlite3.Connection, rng: Random) -> str:
    """The list of inputs in the header edited and sealed anew."""
    text, listing = connection.execute("SELECT fields, inputs FROM header").fetchone()
    edited, what = edited_json(zlib.decompress(listing).decode(), rng)
    raw = edited.encode("utf-8", "surrogatepass")
    header = Header.from_json(text)
    seal = Rows(header, header.fingerprint).seal("header", text, "done", raw=raw)
    connection.execute("UPDATE header SET inputs = ?, state = 'done', seal = ?", (zlib.compress(raw), seal))
    return f"list of inputs, sealed anew: {what}"


def _resealed_row(connection: sqlite3.Connection, rng: Random) -> str:
    """Any value in a row of inputs, votes or certificates, sealed anew."""
    table = rng.choice(TABLES[1:])
    names = _columns(connection, table)
    where, key = _some_rows(connection, table, rng, one=True)
    row = list(connection.execute(f"SELECT * FROM {table} {where}", key).fetchone())
    place = rng.randrange(len(row) - 1)
    row[place] = rng.choice(VALUES)
    (text,) = connection.execute("SELECT fields FROM header").fetchone()
    rows, raw = Rows(Header.from_json(text), Header.from_json(text).fingerprint), b""
    content = row[:-1]
    if table == "votes":
        raw = zlib.decompress(row[6]) if isinstance(row[6], bytes) and row[6] else b""
        content = row[:6]
    values = (row[place], rows.seal(table, *content, raw=raw), *key)
    connection.execute(f"UPDATE OR REPLACE {table} SET {names[place]} = ?, seal = ? {where}", values)
    return f"{table}.{names[place]} = {repr(row[place])[:40]}, sealed anew"


Edit = Callable[[sqlite3.Connection, Random], str]
_EDITS: tuple[Edit, ...] = (
    _value,
    _value,
    _value,
    _another_row,
    _without,
    _input_gone,
    _schema,
    _header_field,
    _counts,
)
_SEALED_ANEW: tuple[Edit, ...] = (_resealed_header, _resealed_list, _resealed_row, _resealed_row)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]


def _some_rows(
    connection: sqlite3.Connection, table: str, rng: Random, one: bool = False
) -> tuple[str, tuple[Any, ...]]:
    """A condition for one row, or for all of one input, or for all, and its values."""
    if table == "header" or (not one and rng.random() < 0.1):
        return "", ()
    key = {"inputs": ["id"], "certificates": ["input"], "votes": ["input", "stage", "part", "sigma", "start"]}[table]
    if table == "votes" and not one and rng.random() < 0.3:
        key = key[:1]
    values = rng.choice(connection.execute(f"SELECT {', '.join(key)} FROM {table}").fetchall())
    return "WHERE " + " AND ".join(f"{name} = ?" for name in key), values


@lru_cache
def bomb() -> bytes:
    """A few megabytes that unpack into six gigabytes of zeros."""
    packer = zlib.compressobj(9)
    first = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(64 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * 100
