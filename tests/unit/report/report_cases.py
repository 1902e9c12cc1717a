"""Ledgers of invented votes for the tests of reports: inputs that differ in how sure router and experts are."""

import numpy as np

from dualrs.schemes import scheme_of
from dualrs.storage import Header, Ledger
from dualrs.votes import BINS, Part, Stage, plain

SIGMAS = (0.25, 0.5, 1.0)
CLASSES = 4

# Settings of runs in which a network sees no noise, and of one with a sigma for each input.
ACE = {"scheme": "ace", "rule": "ace", "sigma_e": None, "cores": 1.0}
MIXED = {"scheme": "mixed", "sigmas": (0.5, 1.0), "confidences": (0.4, 0.6)}
BACKED = {"scheme": "backed", "rule": "cascade", "sigma_e": None, "confidences": (0.4, 0.6)}
LEVELS = {"lowest": 0.3, "highest": 0.9, "levels": 8.0, "dimensions": 192.0}
NEAR = {"scheme": "input-dependent", "rule": "sukenik", "sigmas": (0.5,), "sigma_e": None, "step": 0.5, **LEVELS}
ASCENT = NEAR | {"rule": "as-if-constant", "step": 0.0, "dimensions": 0.0}


def a_header(**changes):
    settings = {
        "rule": "fusion",
        "alpha": 0.01,
        "seed": 0,
        "n0": 50,
        "n": 500,
        "sigmas": SIGMAS,
        "sigma_e": 1.0,
        "classes": CLASSES,
        "image_shape": (3, 8, 8),
        "batch_size": 100,
        "dtype": "float32",
        "device": "cpu",
        "models": {"router": "aa", "class": "bb"},
        "dataset": "toy </script> set",  # a page must show it as text
        "dataset_fingerprint": "cc",
        "noise": "stream-1",
        "votes": "all",
        "versions": {"dualrs": "0.1"},
        "command": "dualrs certify <toy>",
        "created": "2025-01-01T00:00:00",
    }
    settings |= changes
    if "scheme" in settings:
        settings = {name: value for name, value in settings.items() if value is not None}
    return Header(scheme=scheme_of(settings), **settings)


def made(path, header=None, *, count=12, labelled=True, only_chosen=False):
    """A finished ledger on disk. ``only_chosen`` leaves out the experts that the router does not select."""
    header = header or a_header()
    ids = [f"toy/{i}" for i in range(count)]
    with Ledger.create_or_resume(path, header) as ledger:
        ledger.add_inputs((name, i, i % header.scheme.classes if labelled else None) for i, name in enumerate(ids))
        for i, name in enumerate(ids):
            _vote(ledger, name, np.random.default_rng([i, header.seed]), i % header.scheme.classes, only_chosen)
        certificates = header.own_rule.certify(ledger.votes(ids), header.alpha)
        for name, certificate in zip(ids, certificates, strict=True):
            ledger.conclude(name, certificate, seconds=1.5)
    return path


def _vote(ledger, name, rng, label, only_chosen):
    header = ledger.header
    shares = {}
    for stream, answers in ledger.rows.answers.items():
        key = stream.stage, stream.sigma
        if stream == plain(stream.stage) and header.scheme.name != "aces":
            shares[key] = _without_noise(header.scheme, stream.stage, answers, rng, label)
        elif key not in shares:
            p = rng.dirichlet(np.ones(answers) / 5)
            if stream.stage is Stage.CLASS and rng.random() < 0.7:  # mostly right, and surer under less noise
                sure = 0.999 - 0.45 * stream.sigma * rng.random()
                p = sure * np.eye(answers)[(label + 1) * answers // header.scheme.classes - 1] + (1 - sure) * p
            shares[key] = p / p.sum()
    chosen = None
    for part in Part:
        for stream in (s for s in ledger.rows.answers if s.part is part):
            if only_chosen and stream.stage is Stage.CLASS and header.scheme.sigmas.index(stream.sigma) != chosen:
                continue
            if header.scheme.name == "input-dependent" and stream.sigma not in (
                0.0,
                header.scheme.by_level[chosen or 0],
            ):
                continue
            total = 0
            for unit in header.plan.units(name, stream):
                sizes = np.diff(np.append(np.arange(unit.start, unit.stop, 100), unit.stop))
                counts = np.stack([rng.multinomial(n, shares[stream.stage, stream.sigma]) for n in sizes])
                ledger.record(unit, counts.astype(np.int64))
                total = total + counts.sum(axis=0)
            if stream.stage is Stage.ROUTER and part is Part.SELECTION:
                chosen = int(np.argmax(total))


def _without_noise(scheme, stage, answers, rng, label):
    """The one answer of a network without noise: a level or, with the radius that it states, a class or a candidate."""
    if scheme.name == "input-dependent":
        return np.eye(answers)[rng.integers(answers)]
    answer = label if stage is Stage.CLASS and rng.random() < 0.7 else rng.integers(answers // BINS)
    share = np.zeros(answers)
    share[answer * BINS + max(rng.integers(-40, 250), 0)] = 1
    return share
