"""How long it takes to read every vote of a large ledger, and to compare all methods on it."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dualrs.report.compare import compare, gather
from dualrs.schemes import Dual
from dualrs.storage import Header, Ledger
from dualrs.theory.bounds import Floats
from dualrs.votes import BLOCK, Stage

Row = tuple[str, str, str]
Slot = tuple[Stage, float]

CLASSES = 10
HEADER = Header(
    scheme=Dual((0.25, 0.5, 1.0), CLASSES, 1.0),
    rule="fusion",
    alpha=0.001,
    seed=0,
    n0=100,
    n=10_000,
    image_shape=(3, 32, 32),
    batch_size=256,
    dtype="float32",
    device="cpu",
    models={},
    dataset="invented",
    dataset_fingerprint="",
    noise="",
    votes="all",
)


def comparison(inputs: int = 10_000) -> list[Row]:
    """`dualrs compare` on a ledger with every vote, as a command would: from the file to the table."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.ledger"
        write_ledger(path, inputs)
        began, busy = time.perf_counter(), time.process_time()
        found = gather([path]).methods
        table = compare(found, baseline="sigma-0.5")
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
    what = f"comparing {len(table.rows)} methods on {inputs:,} inputs with {HEADER.n:,} votes at every stage"
    return [(what, f"{seconds:.1f} s, {busy:.1f} s of a processor", "under 10 s")]


def write_ledger(path: Path, inputs: int) -> None:
    """A finished ledger with every vote."""
    rng = np.random.default_rng(0)
    ids = [f"test/{i:05}" for i in range(inputs)]
    with Ledger.create_or_resume(path, HEADER) as ledger:
        ledger.add_inputs((name, i, i % CLASSES) for i, name in enumerate(ids))
        for i, name in enumerate(ids):
            shares: dict[Slot, Floats] = {}
            for stream, answers in HEADER.scheme.streams.items():
                p = shares.setdefault((stream.stage, stream.sigma), invented(rng, answers, i % answers))
                for unit in HEADER.plan.units(name, stream):
                    ledger.record(unit, rng.multinomial(BLOCK, p, size=unit.blocks))
        certificates = HEADER.own_rule.certify(ledger.votes(ids), HEADER.alpha)
        for name, certificate in zip(ids, certificates, strict=True):
            ledger.conclude(name, certificate, seconds=1.0)


def invented(rng: np.random.Generator, answers: int, right: int) -> Floats:
    """Probabilities of the answers of a model: mostly right, sometimes unsure, sometimes wrong."""
    p = rng.dirichlet(np.ones(answers) / 4)
    p[right] += rng.choice([0, 1, 9, 99])
    return np.asarray(p / p.sum())
