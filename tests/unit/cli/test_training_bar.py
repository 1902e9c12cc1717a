"""What a training shows on the terminal."""

from dataclasses import replace

import pytest

from dualrs.cli.training_bar import TrainingBar
from dualrs.training.loop import State

STATE = State(
    step=30, steps=100, epoch=2, loss=0.5, rate=0.0025, images_per_second=1234.5, seconds=7.0
)  # fmt: skip


@pytest.fixture
def shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")

    def show(state):
        with TrainingBar("training x") as bar:
            bar.update(state)
        return capsys.readouterr().err

    return show


def test_loss_rate_speed_and_time_left_are_shown(shown):
    line = shown(STATE)
    assert "training x" in line
    assert "loss 0.5000 · rate 0.0025 · 1,234 images/s ·" in line
    assert "left" in line


def test_other_processes_show_nothing(shown, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert shown(STATE) == ""


def test_votes_between_epochs_are_shown_as_they_are_counted(shown):
    assert "counting votes, 40%" in shown(replace(STATE, doing="counting votes, 40%"))
