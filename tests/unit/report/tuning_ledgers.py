"""Ledgers of exact votes with confidences, for the tests of tuning: what each kind of input does at each stage is told.

Class 0 is right everywhere. A stage is a list of (class, bin of confidence, share of the votes).
"""

import numpy as np

from dualrs.schemes import scheme_of
from dualrs.storage import Header, Ledger
from dualrs.votes import Stage

SIGMAS, CONFIDENCES, CLASSES = (0.25, 0.5), (0.4, 0.6), 3
SURE, LIKELY, UNSURE = 2, 1, 0  # bins: at least 0.6, at least 0.4, below
SETTLED = [(0, SURE, 1.0)]
MISLED = [(1, LIKELY, 0.7), (0, SURE, 0.3)]  # most are wrong, and those pass at 0.6
DOUBTFUL = [(0, UNSURE, 1.0)]  # right, and passes at any confidence
LOST = [(1, SURE, 1.0)]


def header(**changes):
    settings = {
        "scheme": "cascade", "rule": "cascade", "alpha": 0.01, "seed": 0, "n0": 100, "n": 400, "sigmas": SIGMAS,
        "classes": CLASSES, "confidences": CONFIDENCES, "image_shape": (3, 8, 8),
        "batch_size": 100, "dtype": "float32", "device": "cpu",
        "models": {"class": "bb"}, "dataset": "toy/test", "dataset_fingerprint": "cc", "noise": "stream-1",
        "votes": "all",
    }  # fmt: skip
    settings |= changes
    return Header(scheme=scheme_of(settings), **settings)


def made(path, kinds, *, labelled=True, leave_out=(), **changes):
    """A finished ledger; ``kinds`` has, for each input, what happens at each stage, the noisiest first."""
    head = header(**changes)
    names = [f"toy/{i:03}" for i in range(len(kinds))]
    falling = sorted(head.scheme.sigmas, reverse=True)
    with Ledger.create_or_resume(path, head) as ledger:
        ledger.add_inputs((name, i, 0 if labelled else None) for i, name in enumerate(names))
        for name, kind in zip(names, kinds, strict=True):
            for stream, answers in ledger.rows.answers.items():
                if (name, stream.sigma) in leave_out:
                    continue
                share = np.zeros(answers)
                if stream.stage is Stage.ROUTER:
                    share[0] = 1
                else:
                    bins = answers // head.scheme.classes
                    for answer, bin_, part in kind[falling.index(stream.sigma)]:
                        share[answer * bins + min(bin_, bins - 1)] += part
                for unit in head.plan.units(name, stream):
                    sizes = np.diff(np.append(np.arange(unit.start, unit.stop, 100), unit.stop))
                    ledger.record(unit, np.stack([_exactly(size, share) for size in sizes]))
        certificates = head.own_rule.certify(ledger.votes(names), head.alpha)
        for name, certificate in zip(names, certificates, strict=True):
            ledger.conclude(name, certificate, seconds=1.0)
    return path


def _exactly(size, share):
    counts = np.floor(size * share + 1e-9).astype(np.int64)
    counts[share.argmax()] += size - counts.sum()
    return counts
