"""The preflight: networks whose votes would mean nothing are refused before any vote counts."""

import copy
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from watched_networks import Asking, Exact, images, source, unit

from dualrs.errors import BadModel, BadSetting, BatchDependent, NonDeterministic, NonFiniteLogits, RoundingDependent
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

IMAGES = images(12)
ONE = (Stage.CLASS, 0.5)


class Calling(nn.Module):
    """A module of one function over flattened images."""

    def __init__(self, function, inner=None):
        super().__init__()
        self.function, self.inner = function, inner
        self.eval()

    def forward(self, x):
        return self.function(x.flatten(1))


def prepared(module, **options):
    made = Engine({ONE: NoisyModel("classifier", module)}, **options)
    made.prepare(IMAGES["0"])
    return made


def positions(x):
    return torch.arange(len(x)).view(-1, 1)


LINEAR = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(
            Calling(lambda x: functional.batch_norm(x, None, None, training=True) @ LINEAR),
            id="batch statistics by functional batch_norm",
        ),
        pytest.param(
            nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten(), nn.Linear(16, 3)).eval(),
            id="a batch norm without running statistics, though in eval mode",
        ),
        pytest.param(Calling(lambda x: (x - x.mean(dim=0)) @ LINEAR), id="images centred by the batch mean"),
        pytest.param(Calling(lambda x: (x / x.abs().max()) @ LINEAR), id="images scaled by the batch maximum"),
        pytest.param(Calling(lambda x: x @ LINEAR + positions(x) % 3), id="logits that depend on the row number"),
        pytest.param(
            Calling(lambda x: functional.pad((x - x.mean(dim=0)) @ LINEAR, (0, 1), value=-1e9)),
            id="a masked class beside logits that depend on the batch",
        ),
    ],
)
def test_network_that_looks_at_the_whole_batch_is_refused(module):
    with pytest.raises(BatchDependent, match="the classifier's logits for an image change with the other images"):
        prepared(module, batch_size=32)


def test_company_that_turns_logits_into_nan_is_no_rounding():
    # On the preflight's dark image alone all is well; its bright company breaks every row.
    module = Calling(lambda x: x @ LINEAR + torch.where(x.mean(dim=1).max() > 0.7, torch.nan, 0.0))
    made = Engine({(Stage.CLASS, 0.1): NoisyModel("classifier", module)}, batch_size=32)
    with pytest.raises(BatchDependent):
        made.prepare(IMAGES["0"] // 8)


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(
            Calling(lambda x: functional.dropout(x, 0.1, training=True) @ LINEAR), id="functional dropout left on"
        ),
        pytest.param(Calling(lambda x: (x + torch.randn_like(x)) @ LINEAR), id="noise added inside the network"),
        pytest.param(Calling(lambda x: x @ LINEAR + torch.rand(())), id="one random number a call"),
    ],
)
def test_network_with_a_mind_of_its_own_is_refused(module):
    with pytest.raises(NonDeterministic, match="the classifier gives different logits for the same batch"):
        prepared(module, batch_size=32)


def test_logits_that_differ_in_their_last_bits_are_worth_a_warning_only():
    module = Calling(lambda x: x @ LINEAR + 1e-6 * positions(x))
    with pytest.warns(RoundingDependent, match="differ in their last bits with the place in the batch"):
        assert prepared(module, batch_size=32).answers == {ONE: 3}


def test_network_that_answers_each_image_by_itself_passes_without_a_word():
    assert prepared(Exact(16), batch_size=32).answers == {ONE: 3}
    assert prepared(Exact(16), batch_size=1).answers == {ONE: 3}
    assert prepared(Exact(16), batch_size=3).answers == {ONE: 3}


def test_normalising_by_stored_statistics_is_fine():
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 3))
    network(torch.rand(50, 1, 4, 4))
    with torch.no_grad():
        prepared(network.eval(), batch_size=32)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_network_that_returns_no_number_is_refused_at_once(value):
    module = Calling(lambda x: x @ LINEAR + torch.tensor([0.0, value, 0.0]))
    with pytest.raises(NonFiniteLogits, match="the classifier returned NaN or infinite logits on 32 of 32 noisy"):
        prepared(module, batch_size=32)


def brittle(threshold):
    """A network that breaks down on bright images only, which the preflight on a dark one cannot see."""
    return Calling(lambda x: x @ LINEAR + torch.where(x.mean(dim=1, keepdim=True) > threshold, torch.nan, 0.0))


@pytest.mark.parametrize("votes", [1000, 100, 10], ids=lambda v: f"{v} votes an input")
def test_not_a_number_in_the_middle_names_the_input(votes):
    dark = {name: (image // 8) for name, image in IMAGES.items()}
    pictures = dark | {"7": (dark["7"] + 220).astype("uint8")}
    made = Engine({(Stage.CLASS, 0.1): NoisyModel("classifier", brittle(0.6))}, batch_size=256)
    made.prepare(pictures["0"])
    work = Asking(pictures, [unit(name, votes, sigma=0.1) for name in pictures])
    with pytest.raises(NonFiniteLogits, match=r"the classifier returned NaN .* noisy copies, of input 7$"):
        count([made], work, source(0))
    assert unit("7", votes, sigma=0.1) not in work.counts


def test_experts_with_different_numbers_of_classes_are_refused():
    experts = {(Stage.CLASS, s): NoisyModel(f"expert {s}", Exact(16, answers=a)) for s, a in ((0.25, 3), (0.5, 4))}
    with pytest.raises(BadModel, match=r"different numbers of classes: \[3, 4\]"):
        Engine(experts, batch_size=8).prepare(IMAGES["0"])


def test_refused_network_is_refused_again():
    made = Engine({ONE: NoisyModel("classifier", Calling(lambda x: x @ LINEAR * torch.nan))}, batch_size=8)
    for _ in range(2):
        with pytest.raises(NonFiniteLogits):
            made.prepare(IMAGES["0"])


def test_preflight_runs_once():
    calls = []
    made = prepared(Calling(lambda x: calls.append(len(x)) or x @ LINEAR), batch_size=8)
    before = len(calls)
    made.prepare(IMAGES["1"])
    assert len(calls) == before


def test_shared_network_is_looked_at_once_if_it_does_not_know_the_sigma():
    calls = []
    shared = NoisyModel("classifier", Calling(lambda x: calls.append(len(x)) or x @ LINEAR))
    Engine({(Stage.CLASS, s): shared for s in (0.25, 0.5, 1.0)}, batch_size=8).prepare(IMAGES["0"])
    assert len(calls) == 2


def test_network_that_knows_the_sigma_is_looked_at_under_each():
    class Told(nn.Module):
        def forward(self, x, sigma):
            return x.flatten(1) @ LINEAR * (torch.nan if sigma > 0.7 else 1)

    told = NoisyModel("classifier", Told().eval())
    with pytest.raises(NonFiniteLogits):
        Engine({(Stage.CLASS, s): told for s in (0.25, 0.5, 1.0)}, batch_size=8).prepare(IMAGES["0"])


# Images that a network does not take

CONV = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()
CHW, HWC = np.zeros((3, 8, 8), np.uint8), np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("module", "image", "words"),
    [
        (CONV, CHW[:1], r"fails on images of 1 x 8 x 8 \(.*channels.*grey images have one channel.*repeat it inside"),
        (CONV, np.zeros((3, 9, 9), np.uint8), "fails on images of 3 x 9 x 9"),
        (CONV, HWC, r"look like height x width x channels: give images as \(channels, height, width\)"),
        (copy.deepcopy(CONV).half(), CHW, 'its weights are float16: call .float.., or pass dtype="float16" beside it'),
        (copy.deepcopy(CONV).bfloat16(), CHW, 'pass dtype="bfloat16" beside it'),
        (copy.deepcopy(CONV).double(), CHW, r"its weights are float64: call .float\(\)$"),
        (Calling(lambda x: {}["missing"]), CHW, r"fails on images of 3 x 8 x 8 \('missing'\)"),
    ],
)
def test_a_network_that_fails_on_the_images_is_refused_in_a_sentence(module, image, words):
    with pytest.raises(BadModel, match=words) as refusal:
        Engine({ONE: NoisyModel("classifier", module)}, batch_size=4).prepare(image)
    assert refusal.value.__cause__ is not None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_the_sentence_advises_helps(dtype):
    module = copy.deepcopy(CONV).to(getattr(torch, dtype))
    Engine({ONE: NoisyModel("classifier", module)}, batch_size=4, dtype=dtype).prepare(CHW)


# Threads


class Slow(nn.Module):
    """Takes a while, less of it on several threads once they have settled; notes how many it had."""

    def __init__(self, seconds, gain, settled=0):
        super().__init__()
        self.seconds, self.gain, self.settled, self.had = seconds, gain, settled, []
        self.eval()

    def forward(self, x):
        self.had.append(torch.get_num_threads())
        together = self.had[-1] > 1 and self.had.count(self.had[-1]) > self.settled
        time.sleep(self.seconds / (self.gain if together else 1))
        return x.flatten(1)[:, :3]


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    ("seconds", "gain", "threads"),
    [(0.001, 1, 1), (0.001, 0.1, 1), (0.003, 8, 2), (0.02, 1, 2)],
    ids=["small", "small, and worse together", "small, and better together", "large"],
)
def test_small_networks_run_on_one_thread(seconds, gain, threads):
    module = Slow(seconds, gain)
    made = prepared(module, batch_size=4)
    assert torch.get_num_threads() == 2  # the user's own setting stays
    with made.machine.inference():
        module(torch.zeros(4, 1, 4, 4))
    assert module.had[-1] == threads


@pytest.mark.usefixtures("two_threads")
def test_threads_have_time_to_settle():
    """At first both may run on one core: of few trials none would show what they gain."""
    module = Slow(0.003, 8, settled=8)
    with prepared(module, batch_size=4).machine.inference():
        module(torch.zeros(4, 1, 4, 4))
    assert module.had[-1] == 2


@pytest.mark.usefixtures("two_threads")
def test_a_network_that_is_far_from_quick_is_timed_once():
    module = Slow(0.6, 100)
    prepared(module, batch_size=4)
    assert module.had.count(1) == 1


@pytest.mark.usefixtures("two_threads")
def test_threads_that_are_asked_for_are_taken():
    module = Slow(0, 1)
    prepared(module, batch_size=4, threads=1)
    assert set(module.had) == {1}
    with pytest.raises(BadSetting, match="number of threads must be at least 1, got 0"):
        prepared(module, threads=0)
