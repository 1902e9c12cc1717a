"""Ledgers of invented votes to compare methods on, with the votes at hand."""

import numpy as np

from dualrs.schemes import rule, scheme_of
from dualrs.storage import Header, Ledger
from dualrs.votes import Stage

CLASSES, SIGMAS = 4, (1.0, 0.25, 0.5)  # not in order: nothing may depend on that


def header(**changes):
    settings = {
        "rule": "fusion", "alpha": 0.01, "seed": 0, "n0": 30, "n": 400, "sigmas": SIGMAS, "sigma_e": 1.0,
        "classes": CLASSES, "image_shape": (3, 8, 8), "batch_size": 100, "dtype": "float32", "device": "cpu",
        "models": {"router": "aa", "class": "bb"}, "dataset": "toy", "dataset_fingerprint": "cc", "noise": "stream-1",
        "votes": "all",
    }  # fmt: skip
    settings |= changes
    return Header(scheme=scheme_of(settings), **settings)


def ids(count):
    return [f"toy/{i:03}" for i in range(count)]


def ledger_file(path, *, count=60, seed=0, labelled=True, names=None, **changes):
    """A finished ledger with every vote."""
    made, names = header(seed=seed, **changes), names or ids(count)
    with Ledger.create_or_resume(path, made) as ledger:
        ledger.add_inputs((name, i, i % CLASSES if labelled else None) for i, name in enumerate(names))
        for i, name in enumerate(names):
            rng, shares = np.random.default_rng([seed, i]), {}
            for stream, answers in ledger.rows.answers.items():
                p = shares.setdefault((stream.stage, stream.sigma), _share(rng, answers, stream.stage, i % CLASSES))
                sizes = [100] * (made.plan.votes(stream.part) // 100) or [made.plan.n0]
                counts = np.stack([rng.multinomial(size, p) for size in sizes])
                for unit in made.plan.units(name, stream):
                    ledger.record(unit, counts)
        certificates = rule(made.rule).certify(ledger.votes(names), made.alpha)
        for name, certificate in zip(names, certificates, strict=True):
            ledger.conclude(name, certificate, seconds=1.0)
    return path


def _share(rng, answers, stage, label):
    """Mostly right, sometimes unsure, sometimes wrong."""
    if stage is Stage.ROUTER:
        return rng.dirichlet(np.ones(answers) / 4)
    p = rng.dirichlet(2 * np.ones(answers))
    p[label] += rng.choice([0, 0, 1, 5, 50])
    return p / p.sum()
