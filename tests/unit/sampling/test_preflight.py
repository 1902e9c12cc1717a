"""The preflight: networks whose votes would mean nothing are refused before any vote counts."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from watched_networks import Asking, Exact, images, source, unit

from dualrs.errors import BadModel, BatchDependent, NonDeterministic, NonFiniteLogits, RoundingDependent
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
