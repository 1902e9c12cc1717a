"""A small run for the tests of storage: headers, votes of invented models, finished ledgers."""

import sqlite3
from pathlib import Path

import numpy as np

from dualrs.schemes import rule, scheme_of
from dualrs.storage import Header, Ledger
from dualrs.storage.rows import Rows

CLASSES = 5


def a_header(**changes):
    settings = {
        "rule": "fusion",
        "alpha": 0.01,
        "seed": 7,
        "n0": 50,
        "n": 2300,  # three units, of which the last ends in the middle of nothing
        "sigmas": (0.25, 0.5, 1.0),
        "sigma_e": 1.0,
        "classes": CLASSES,
        "image_shape": (3, 32, 32),
        "batch_size": 100,
        "dtype": "float32",
        "device": "cpu",
        "models": {"router": "aa", "class": "bb"},
        "dataset": "toy",
        "dataset_fingerprint": "cc",
        "noise": "stream-1",
        "versions": {"dualrs": "0.1"},
        "command": "dualrs certify",
        "created": "2025-01-01T00:00:00",
    }
    settings |= changes
    return Header(scheme=scheme_of(settings), **settings)


def one_stage_header(**changes):
    return a_header(**({"rule": "cohen", "sigmas": (0.5,), "sigma_e": None, "models": {"class": "bb"}} | changes))


def a_unit(header, input_id, stage=None):
    """The first recorded unit of an input with invented counts."""
    return next((u, c) for u, c in units_of(header, input_id) if stage is None or u.stream.stage is stage)


def units_of(header, input_id, seed=0):
    """All units of one input with counts as of a rather sure model; the same on every call."""
    rng = np.random.default_rng([seed, *input_id.encode()])
    sureness = rng.uniform(0.4, 0.99)
    for stream, answers in Rows(header, "").answers.items():
        p = np.full(answers, (1 - sureness) / (answers - 1))
        p[0] = sureness
        for unit in header.plan.units(input_id, stream):
            sizes = np.diff(np.append(np.arange(unit.start, unit.stop, 100), unit.stop))
            yield unit, np.stack([rng.multinomial(size, p) for size in sizes]).astype(np.int64)


def finish(ledger, ids):
    """Record and conclude some inputs, as a run does."""
    for input_id in ids:
        for unit, counts in units_of(ledger.header, input_id):
            ledger.record(unit, counts)
    certificates = rule(ledger.header.rule).certify(ledger.votes(ids), ledger.header.alpha)
    for input_id, certificate in zip(ids, certificates, strict=True):
        ledger.conclude(input_id, certificate, seconds=1.5)


def names(count, first=0):
    return [f"toy/{i}" for i in range(first, first + count)]


def finished(path, header=None, count=6, first=0):
    """A finished ledger on disk, closed."""
    with Ledger.create_or_resume(path, header or a_header()) as ledger:
        ledger.add_inputs((name, first + i, i % CLASSES) for i, name in enumerate(names(count, first)))
        finish(ledger, names(count, first))
    return Path(path)


def edit(path, sql, *values):
    """Tamper with a ledger behind its back; the number of rows hit."""
    connection = sqlite3.connect(path)
    try:
        hit = connection.execute(sql, values).rowcount
        connection.commit()
        return hit
    finally:
        connection.close()


def look(path, sql, *values):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()
