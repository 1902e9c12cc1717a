"""Every error there is, met on the command line: one sentence, exit code 2, no traceback; and an entry in the docs."""

import sys
from pathlib import Path

import pytest

from dualrs import errors
from dualrs.cli import main
from dualrs.storage.lease import Lease

DOCS = Path(__file__).parents[2] / "docs" / "warnings.md"

NETS = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, then):
        super().__init__()
        self.layer, self.then = nn.Linear(36, 3), then
        self.eval()

    def forward(self, x):
        return self.then(self.layer(x.flatten(1)), x)


def out_of_memory(logits, x):
    raise MemoryError


good = Net(lambda logits, x: logits)
training = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(36, 3))
words = Net(lambda logits, x: "a cat")
nan = Net(lambda logits, x: logits * float("nan"))
together = Net(lambda logits, x: logits - 100 * logits.mean(dim=0))
chance = Net(lambda logits, x: logits + torch.randn_like(logits))
huge = Net(out_of_memory)
data = np.full((5, 1, 6, 6), 200, dtype=np.uint8), np.array([0, 1, 2, 0, 1])
wild = np.full((2, 1, 6, 6), 300.0), np.array([0, 1])
"""

CERTIFY = ["certify", "--sigma", "0.1", "--n", "200", "--n0", "20", "-o", "new.ledger", "--data", "nets.py:data"]


def certify(network: str, *more: str) -> list[str]:
    return [*CERTIFY, "--classifier", f"nets.py:{network}", *more]


# What a user does, and the error that follows.
MET = {
    errors.BadSetting: certify("good", "--sigma", "-1"),
    errors.TooFewVotes: certify("good", "--n", "3"),
    errors.UnusableVotes: ["compare", "run.ledger", "--methods", "fusion"],
    errors.BadImage: certify("good", "--data", "nets.py:wild"),
    errors.BadModel: certify("words"),
    errors.TrainingMode: certify("training"),
    errors.NonFiniteLogits: certify("nan"),
    errors.BatchDependent: certify("together"),
    errors.NonDeterministic: certify("chance"),
    errors.OutOfMemory: certify("huge"),
    errors.LedgerError: ["show", "nets.py"],
    errors.ForeignLedger: certify("good", "--sigma", "0.2", "-o", "run.ledger"),
    errors.LedgerBusy: certify("good", "-o", "busy.ledger"),
    errors.BadTable: ["import", "nets.py"],
    errors.BadRecipe: ["certify"],
    errors.BadData: certify("good", "--data", "folder:nowhere"),
    errors.BadCheckpoint: ["certify", "--classifier", "no.safetensors", *CERTIFY[1:]],
    errors.MissingExtra: ["figure", "accuracy", "run.ledger", "-o", "a.png"],
}
# Those that need workers or a hub are met where there is a stand-in for one.
ELSEWHERE = {errors.WorkersFailed: "tests/scale", errors.InputsFailed: "tests/scale", errors.Unreachable: "tests/unit"}


def kinds(base: type) -> set[type]:
    """A class of errors and all under it."""
    return {base}.union(*map(kinds, base.__subclasses__()))


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command as the terminal does; its exit code and what it says of errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(NETS)

    def run(arguments: list[str]) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dualrs", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return run


def test_every_error_and_warning_has_its_entry():
    known = kinds(errors.DualrsError) | kinds(errors.DualrsWarning)
    named = {k.__name__ for k in known if k.__module__ == errors.__name__} - {"DualrsError", "DualrsWarning"}
    entries = {line.split()[1] for line in DOCS.read_text().splitlines() if line.startswith("### ")}
    assert entries == named


def test_every_error_is_met():
    ours = {k for k in kinds(errors.DualrsError) if k.__module__ == errors.__name__} - {errors.DualrsError}
    assert ours == {*MET, *ELSEWHERE}
    for kind, folder in ELSEWHERE.items():
        tests = (Path(__file__).parents[2] / folder).rglob("test_*.py")
        assert any(f"raises({kind.__name__}" in path.read_text() for path in tests)


@pytest.mark.parametrize("kind", MET, ids=lambda kind: kind.__name__)
def test_error_is_one_sentence(kind, call, tmp_path, monkeypatch):
    code, _ = call(certify("good", "-o", "run.ledger"))
    assert code == 0
    raised = []
    init = kind.__init__
    monkeypatch.setattr(kind, "__init__", lambda self, *given: (raised.append(type(self)), init(self, *given))[1])
    if kind is errors.MissingExtra:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    busy = Lease(tmp_path / "busy.ledger") if kind is errors.LedgerBusy else None
    code, said = call(MET[kind])
    if busy is not None:
        busy.release()
    assert code == 2
    assert kind in raised
    assert "error: " in said
    assert "Traceback" not in said
