"""Several batches at once on a CPU: only for networks that answer so to the bit, and with the same votes."""

import threading
import time
from queue import SimpleQueue

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import Asking, engine, images, source, unit

from dualrs.errors import NonFiniteLogits
from dualrs.models.noisy import NoisyModel
from dualrs.sampling import abreast
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

IMAGES = images(6, shape=(3, 8, 8))
ONE, OTHER = (Stage.CLASS, 0.5), (Stage.ROUTER, 0.5)
EVERY_INPUT = [unit(name, 300) for name in IMAGES]

# Both global, and of kinds that cannot be looked into:
HEARD = SimpleQueue()  # the threads of batches, and when they began and ended
SHARED = bytearray()  # the fault of a network that may not answer two batches at once


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    heard()
    yield
    torch.set_num_threads(before)


class Taking(nn.Module):
    """Takes a while, and tells nobody but the test which thread it had; it answers by the image alone."""

    def __init__(self, seconds=0.004, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.seconds = seconds
        self.register_buffer("weight", torch.randint(-3, 4, (192, 3), generator=generator).double())
        self.eval()

    def features(self, x):
        return (x.flatten(1).double() * 255).round() - 128

    def forward(self, x):
        began = time.perf_counter()
        time.sleep(self.seconds)
        logits = self.features(x) @ self.weight + torch.arange(3) / 8
        name, threads = threading.current_thread().name.rpartition("_")[0], torch.get_num_threads()
        HEARD.put((name, threads, began, time.perf_counter()))
        return logits


class Leaky(Taking):
    """The sabotaged twin: keeps features where another batch finds them."""

    def __init__(self):
        super().__init__(seconds=0)

    def features(self, x):
        SHARED[:] = super().features(x).numpy().tobytes()
        time.sleep(0.02)
        return torch.frombuffer(bytearray(SHARED), dtype=torch.float64).view(len(x), -1)


class Noting(Taking):
    """Keeps its features in itself."""

    def features(self, x):
        self.kept = super().features(x)
        return self.kept


class AtHome(Taking):
    """Answers in the main thread only."""

    def features(self, x):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not here")
        return super().features(x)


def heard():
    """What was heard since the last time."""
    return [HEARD.get() for _ in range(HEARD.qsize())]


def voted(made, units=EVERY_INPUT):
    work = Asking(IMAGES, units)
    heard()
    count([made], work, source(1))
    return work


def overlapping(batches):
    """Whether one batch began before another had ended."""
    return any(a[2] < b[2] < a[3] for a in batches for b in batches)


def test_batches_run_at_once_with_the_votes_of_one_after_the_other():
    made = engine({ONE: Taking()}, IMAGES["0"], batch_size=64)
    assert made.machine.at_once == 2
    together, batches = voted(made), heard()
    assert overlapping(batches)
    assert {each[:2] for each in batches[:-1]} == {("dualrs-votes", 1)}
    made.machine.at_once = 1
    alone, batches = voted(made), heard()
    assert not overlapping(batches)
    assert {each[:2] for each in batches} == {("", 2)}
    for asked, counts in alone.counts.items():
        np.testing.assert_array_equal(together.counts[asked], counts)


def test_seconds_of_votes_add_up_to_no_more_than_went_by():
    made = engine({ONE: Taking()}, IMAGES["0"], batch_size=64)
    began = time.perf_counter()
    assert sum(voted(made).seconds.values()) < time.perf_counter() - began


def test_a_batch_by_itself_has_all_threads():
    voted(engine({ONE: Taking()}, IMAGES["0"], batch_size=64), [unit("0", 50)])
    assert [each[:2] for each in heard()] == [("", 2)]


@pytest.mark.parametrize("network", [Leaky(), Noting(), AtHome()], ids=["leaky", "noting", "at home"])
def test_networks_that_cannot_answer_one_at_a_time(network):
    made = engine({ONE: network}, IMAGES["0"], batch_size=64)
    assert made.machine.at_once == 1
    other = voted(engine({ONE: Taking()}, IMAGES["0"], batch_size=64)).counts
    for asked, counts in voted(made).counts.items():
        np.testing.assert_array_equal(other[asked], counts)


def test_the_leaky_network_would_answer_otherwise():
    """Else the test above would show nothing."""
    made = engine({ONE: Leaky()}, IMAGES["0"], batch_size=64)
    right = voted(made).counts
    made.machine.at_once = 2
    wrong = voted(made).counts
    assert any(not np.array_equal(right[asked], wrong[asked]) for asked in right)


@pytest.mark.parametrize("options", [{"threads": 1}, {"compile": True}], ids=["one thread", "compiled"])
@pytest.mark.filterwarnings("ignore::dualrs.errors.NotCompiled", "ignore::DeprecationWarning")
def test_nothing_runs_at_once_where_it_should_not(options):
    assert engine({ONE: Taking(0.002)}, IMAGES["0"], batch_size=16, **options).machine.at_once == 1


@pytest.mark.parametrize(("name", "seconds"), [("_SHORT", 100), ("_LONG", 0.001)], ids=["too short", "too long"])
def test_networks_that_take_too_little_or_too_much_time_run_one_at_a_time(monkeypatch, name, seconds):
    monkeypatch.setattr(abreast, name, seconds)
    assert engine({ONE: Taking()}, IMAGES["0"], batch_size=16).machine.at_once == 1


def test_one_network_of_several_may_be_quick_and_none_impure():
    assert engine({ONE: Taking(0), OTHER: Taking(seed=1)}, IMAGES["0"], batch_size=16).machine.at_once == 2
    assert engine({ONE: Noting(), OTHER: Taking(seed=1)}, IMAGES["0"], batch_size=16).machine.at_once == 1


def test_a_panel_runs_as_suits_all():
    panel = [engine({ONE: network}, IMAGES["0"], batch_size=64) for network in (Taking(), Noting(seed=1))]
    heard()
    count(panel, Asking(IMAGES, EVERY_INPUT), source(1))
    assert {each[0] for each in heard()} == {""}


def test_torch_has_as_many_threads_afterwards_as_before():
    voted(engine({ONE: Taking()}, IMAGES["0"], batch_size=64))
    assert torch.get_num_threads() == 2
    found = []
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert found == [2]


class Failing(Taking):
    """Has no number for dark images."""

    def forward(self, x):
        return super().forward(x).masked_fill(x.mean(dim=(1, 2, 3))[:, None] < 0.25, torch.nan)


def test_an_error_in_one_of_the_batches_names_its_input():
    made = Engine({(Stage.CLASS, 0.1): NoisyModel("classifier", Failing())}, batch_size=64)
    made.prepare(IMAGES["0"])
    assert made.machine.at_once == 2
    given = IMAGES | {"dark": np.zeros((3, 8, 8), dtype=np.uint8)}
    with pytest.raises(NonFiniteLogits, match=r"the classifier returned NaN .* of input dark"):
        count([made], Asking(given, [unit(name, 300, sigma=0.1) for name in given]), source(1))


def test_a_run_that_is_stopped_leaves_no_thread_and_keeps_what_it_had():
    made = engine({ONE: Taking()}, IMAGES["0"], batch_size=64)

    class Stopping(Asking):
        def batch_done(self):
            super().batch_done()
            if self.batches == 12:
                raise KeyboardInterrupt

    work, before = Stopping(IMAGES, EVERY_INPUT), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        count([made], work, source(1))
    assert threading.active_count() == before
    whole = voted(made).counts
    assert 0 < len(work.counts) < len(whole)
    for asked, counts in work.counts.items():
        np.testing.assert_array_equal(whole[asked], counts)
