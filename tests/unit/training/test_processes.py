"""Two processes that train together, on CPUs: what they end with is what one alone ends with."""

import csv
import os
import socket
import subprocess
import sys

import pytest
import shared_training
import torch
from shared_training import begun, plain, voted, whole

from dualrs.errors import MissingExtra
from dualrs.models.card import Card
from dualrs.training.processes import is_main, join

TOGETHER = 2
CLOSE = {"rtol": 0, "atol": 1e-12}  # of weights around 1 in float64, after 24 steps: some thousand roundings


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return *plain(folder / "plain"), losses(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where two processes have trained; one of their trainings was begun by one process alone, one they only began."""
    folder = tmp_path_factory.mktemp("together")
    begun(folder / "begun by one")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(TOGETHER), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, shared_training.__file__, folder],
            env=os.environ | common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(TOGETHER)
    ]
    complaints = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * TOGETHER, complaints
    return folder


@pytest.fixture(scope="module")
def seen(folder):
    return [torch.load(folder / f"{rank}.pt") for rank in range(TOGETHER)]


def losses(folder, name="plain"):
    with (folder / f"{name}.log.csv").open(newline="") as file:
        return [(row["step"], row["rate"], row["loss"]) for row in csv.DictReader(file)]


def same(one, other, **tolerance):
    for key, value in one.items():
        torch.testing.assert_close(value, other[key], **(tolerance or {"rtol": 0, "atol": 0}))


def test_weights_are_those_of_one_process(seen, alone):
    same(seen[0]["plain"][0], alone[0], **CLOSE)


def test_votes_between_epochs_are_those_of_one_process_and_known_to_both(seen, tmp_path):
    ours = voted(tmp_path / "voted")
    for one in seen:
        same(one["voted"], ours)
    assert len(ours["right votes"].unique()) > 2


def test_one_process_goes_on_from_a_checkpoint_of_two(folder, alone):
    weights, given, _ = plain(folder / "begun by two")
    assert len(given) == 13, "the checkpoint was of step 11"
    same(weights, alone[0], **CLOSE)
    assert losses(folder, "begun by two") == alone[3]


def test_two_processes_go_on_from_a_checkpoint_of_one(folder, seen, alone):
    same(seen[0]["resumed"], alone[0], **CLOSE)
    assert losses(folder, "begun by one") == alone[3]


def test_processes_share_every_batch(seen, alone):
    shares = [seen[rank]["plain"][1] for rank in range(TOGETHER)]
    assert [share.shape for share in shares] == [(24, 8)] * TOGETHER
    assert torch.equal(torch.cat(shares, dim=1).sort(dim=1).values, alone[1].sort(dim=1).values)


def test_loss_is_that_of_the_whole_batch(folder, alone):
    assert losses(folder) == alone[3]


def test_every_process_ends_with_the_same_weights_and_statistics(seen):
    for name in ("resumed", "normalised"):
        same(seen[0][name], seen[1][name])
    same(seen[0]["plain"][0], seen[1]["plain"][0])


def test_first_process_draws_what_one_alone_draws_and_the_other_something_else(seen, alone):
    first, second = (seen[rank]["plain"][2] for rank in range(TOGETHER))
    assert torch.equal(first, alone[2])
    assert not (first == second).any()


def test_only_one_process_writes(folder, seen, tmp_path):
    card = Card.model_validate_json(seen[0]["card"])
    assert seen[1]["card"] == seen[0]["card"]
    assert card == Card.read(folder / "whole.json")
    assert card.cost.endswith(" on 2 x 1 CPU thread")
    assert sorted(p.name for p in folder.glob("*whole*")) == ["whole.json", "whole.log.csv", "whole.safetensors"]
    assert card.training == whole(tmp_path / "whole.safetensors").training
    assert [row[0] for row in losses(folder)] == ["10", "20", "24"]


def test_no_thread_is_left_to_the_end_of_the_interpreter(folder):
    assert [(folder / f"{rank}.threads").read_text() for rank in range(TOGETHER)] == ["1"] * TOGETHER


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nan", "the loss became nan at step 1, on the images "),
        ("other", "the processes are not about to do the same"),
        ("uneven", "2 processes cannot share batches of 15 evenly"),
        ("device", "2 processes were launched, which cannot train together on cuda here"),
    ],
)
def test_every_process_stops_with_the_same_sentence(seen, name, sentence):
    assert sentence in seen[0][name]
    assert seen[1][name] == seen[0][name]


def test_only_the_first_of_several_shows_its_progress(monkeypatch):
    assert is_main()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert not is_main()
    monkeypatch.setenv("RANK", "0")
    assert is_main()


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtra, match=r"several processes needs the package accelerate.*dualrs\[gpus\]"):
        join("cpu")
