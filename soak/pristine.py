"""The files that are mutated, as dualrs itself makes them: ledgers of every kind of run, weights, a checkpoint, tables.

Enters: a folder. Leaves: one folder in it for each kind of file. Made in a second or two, once for a campaign.
"""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dualrs.config import BUNDLED
from dualrs.data.dataset import ArrayDataset
from dualrs.jobs import assign_dataset, certify_dataset, label_dataset
from dualrs.models.architectures import build, complete
from dualrs.models.card import Architecture, Card
from dualrs.models.weights import save_weights
from dualrs.policy import Tolerance
from dualrs.smoothed import Aces, DualSmoothed, Pool, RouterAlone, Smoothed
from dualrs.storage import Ledger, derive, write
from dualrs.storage.database import APPLICATION, SCHEMA
from dualrs.storage.rows import Rows
from dualrs.theory.looks import planned_looks
from dualrs.training.checkpoint import write_checkpoint
from dualrs.votes import SamplingPlan
from soak import toys

SIGMAS = (0.25, 0.5, 1.0)
SOME = range(4)  # inputs of a ledger
FIRST = "first-format.ledger"  # which lists no inputs
IDENTITY = "a training of the soak"


def make_all(folder: Path) -> None:
    """Make every file."""
    torch.set_num_threads(1)
    for name in ("ledgers", "weights", "checkpoint", "recipes", "tables"):
        (folder / name).mkdir()
    _ledgers(folder / "ledgers")
    _weights(folder / "weights")
    network, optimizer = trained()
    content = {"identity": IDENTITY, "step": 7, "seconds": 12.5, "loss": 0.25}
    states = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    write_checkpoint(content | states, folder / "checkpoint" / "x.checkpoint")
    for recipe in BUNDLED.rglob("*.toml"):
        target = folder / "recipes" / recipe.relative_to(BUNDLED)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(recipe, target)
    _tables(folder / "tables", folder / "ledgers" / "fusion.ledger")


def _ledgers(folder: Path) -> None:
    pixels, labels = toys.images()
    data = ArrayDataset(pixels, labels, name="noise")
    fixed, looks = SamplingPlan(20, 300), SamplingPlan(20, 800, planned_looks(800))
    router, classifier = toys.router(), toys.classifier()
    dual = DualSmoothed(router, classifier, sigmas=SIGMAS, sigma_e=1.0, batch_size=100)

    def certify(model: DualSmoothed | Smoothed | Aces, name: str, plan: SamplingPlan, **options: Any) -> None:
        certify_dataset(
            model, data, folder / f"{name}.ledger", plan=plan, alpha=0.01, seed=3, indices=SOME, command="a command",
            **options,
        )  # fmt: skip

    certify(dual, "fusion", fixed, rule=dual.rule("fusion"))
    certify(dual, "adaptive", looks, rule=dual.rule("fusion"), target=Tolerance(0.05))
    one = Smoothed(classifier, sigma=0.5, batch_size=100)
    certify(one, "cohen", fixed, rule=one.rule("cohen"))
    aces = Aces(classifier, router, 0.5, (0.2, 0.6), batch_size=100)
    certify(aces, "aces", fixed, rule=aces.rule("aces-0.6"))
    label_dataset(
        Pool(classifier, SIGMAS, batch_size=100),
        data,
        folder / "labels.ledger",
        n=200,
        alpha=0.01,
        seed=3,
        indices=SOME,
    )
    alone = RouterAlone(router, SIGMAS, 1.0, batch_size=100)
    assign_dataset(alone, data, folder / "assigned.ledger", n=200, alpha=0.01, seed=3, indices=SOME)
    for path in sorted(folder.glob("*.ledger")):
        _without_times(path)
    _first_format(folder / "fusion.ledger", folder / FIRST)


def _without_times(path: Path) -> None:
    """Write a ledger once more, as if it had been made at one moment: the same bytes on every day."""
    made = path.with_suffix(".made")
    path.rename(made)
    with Ledger.open(made) as old:
        header = replace(old.header, created="2025-01-01T00:00:00+00:00")
        with Ledger.create_or_resume(path, header) as new:
            new.add_inputs(old.inputs())
            for unit, counts in old._units("SELECT * FROM votes"):
                new.record(unit, counts)
            for input_id, concluded in old.certificates().items():
                new.conclude(input_id, concluded.certificate, 1.5)
    made.unlink()


def _first_format(recent: Path, path: Path) -> None:
    """The same run as dualrs wrote it at first: a header without a list of inputs, and noise by name."""
    with Ledger.open(recent) as ledger, closing(sqlite3.connect(path)) as connection, connection:
        header = replace(ledger.header, format=1, identity={}, noise="integer-gaussian philox-4x64 1")
        rows = Rows(header, header.fingerprint)

        def put(table: str, row: Sequence[object]) -> None:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

        connection.execute("CREATE TABLE header (fingerprint TEXT NOT NULL, fields TEXT NOT NULL, seal TEXT NOT NULL)")
        for statement in (f"PRAGMA application_id = {APPLICATION}", "PRAGMA user_version = 1", *SCHEMA[1:]):
            connection.execute(statement)
        put("header", (header.fingerprint, header.to_json(), rows.seal("header", header.to_json())))
        for known in ledger.inputs():
            put("inputs", rows.of_input(known))
        for unit, counts in ledger._units("SELECT * FROM votes"):
            put("votes", rows.of_unit(unit, counts))
        for input_id, concluded in ledger.certificates().items():
            put("certificates", rows.of_certificate(input_id, concluded))


def _weights(folder: Path) -> None:
    """A small network of each kind that dualrs builds, with its card."""
    for name, architecture in (
        ("unet", Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})),
        ("resnet", Architecture(network="lean-resnet", arguments={"widths": [8], "blocks": [1], "classes": 3})),
    ):
        whole = complete(architecture)
        card = Card(
            what="made for the soak", architecture=whole, data="none", recipe="none", seed=0, cost="none",
            scores={"accuracy": 0.5, "loss": 1.25}, licence="Apache-2.0", training=IDENTITY,
        )  # fmt: skip
        torch.manual_seed(0)
        save_weights(build(whole), card, folder / f"{name}.safetensors")


def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    """A tiny network after one step, and its optimizer: the same on every call."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    network(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return network, optimizer


def _tables(folder: Path, ledger: Path) -> None:
    """A table that dualrs exports, and one as others write it."""
    with Ledger.open(ledger) as opened:
        write(derive(opened)[0], folder / "ours.tsv")
    lines = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    for i in range(12):
        label, predict = i % 3, i % 4 - 1
        radius = 0.0 if predict < 0 else 0.123 * i
        lines.append(f"{20 * i}\t{label}\t{predict}\t{radius:.3}\t{int(predict == label)}\t0:00:{i:02}.5")
    (folder / "theirs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
