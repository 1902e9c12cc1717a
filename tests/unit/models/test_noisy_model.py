"""NoisyModel: what is accepted as a network, how it is called, and its fingerprint."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import BadModel, TrainingMode
from dualrs.models.noisy import NoisyModel

BATCH = torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(0))


class Returning(nn.Module):
    """Returns what a function makes of the batch."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, x):
        return self.function(x)


def linear(answers=3, seed=0):
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, answers))
    generator = torch.Generator().manual_seed(seed)
    for p in network.parameters():
        p.data = torch.randn(p.shape, generator=generator)
    return network.eval()


# What is accepted


@pytest.mark.parametrize(
    ("thing", "called"),
    [
        pytest.param(lambda x: x, "function", id="a function"),
        pytest.param(nn.Linear, "type", id="a class in place of its instance"),
        pytest.param("resnet50", "str", id="a name"),
        pytest.param(None, "NoneType", id="nothing"),
        pytest.param({"weight": torch.zeros(2)}, "dict", id="a state dict"),
        pytest.param(SimpleNamespace(logits=None), "SimpleNamespace", id="some other object"),
    ],
)
def test_thing_that_is_not_a_module_is_refused(thing, called):
    with pytest.raises(BadModel, match=f"the router must be a torch.nn.Module, .* got {called}"):
        NoisyModel("router", thing)


def test_module_in_training_mode_is_refused():
    with pytest.raises(TrainingMode, match=r"classifier is in training mode \(the module itself\).*call \.eval\(\)"):
        NoisyModel("classifier", nn.Sequential(nn.Flatten(), nn.Linear(16, 3)))


def test_module_of_which_one_part_is_in_training_mode_is_refused():
    network = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(16, 3), nn.Dropout(0.5))).eval()
    network[1][1].train()
    with pytest.raises(TrainingMode, match=r"in training mode \(1\.1\)"):
        NoisyModel("classifier", network)


def test_module_put_back_into_training_mode_is_refused_when_it_is_used_again():
    """Wrapped once, trained on, certified again: the usual loop."""
    network = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 3)).eval()
    smoothed = Smoothed(network, 0.5)
    image = np.zeros((1, 4, 4), dtype=np.uint8)
    smoothed.predict(image, n=20)
    network.train()
    with pytest.raises(TrainingMode):
        smoothed.predict(image, n=20)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(
            lambda x: SimpleNamespace(scores=x.flatten(1)),
            "returned SimpleNamespace, neither a tensor of logits nor an object or dict with logits",
            id="an output object",
        ),
        pytest.param(lambda x: (x.flatten(1), None), "returned tuple", id="a tuple"),
        pytest.param(lambda x: {"scores": x.flatten(1)}, "returned dict", id="a dict"),
        pytest.param(lambda x: x.flatten(1).numpy(), "returned ndarray", id="a numpy array"),
        pytest.param(lambda x: x.flatten(1).argmax(1), r"shape \(5,\) for 5 images", id="answers in place of logits"),
        pytest.param(lambda x: x, r"shape \(5, 1, 4, 4\) for 5", id="a map of logits"),
        pytest.param(lambda x: x.flatten(1)[:4], r"shape \(4, 16\) for 5", id="a row too few"),
        pytest.param(lambda x: x.flatten(1).T, r"shape \(16, 5\) for 5", id="rows and columns exchanged"),
        pytest.param(lambda x: x.flatten(1)[:, :1], r"shape \(5, 1\).*at least two logits", id="a single logit"),
        pytest.param(lambda x: x.flatten(1)[:, :0], r"shape \(5, 0\)", id="no logit"),
    ],
)
def test_output_that_is_not_a_row_of_logits_per_image_is_refused(function, message):
    with pytest.raises(BadModel, match=message):
        NoisyModel("classifier", Returning(function))(BATCH, 0.5)


def test_two_logits_are_enough():
    assert NoisyModel("classifier", linear(2))(BATCH, 0.5).shape == (5, 2)


# How it is called


def test_plain_module_is_called_with_images_alone():
    network = linear()
    model = NoisyModel("classifier", network)
    assert not model.takes_sigma
    assert torch.equal(model(BATCH, 0.5), network(BATCH))


class Told(nn.Module):
    def forward(self, x, sigma):
        return x.flatten(1)[:, :3] * sigma


class ToldByKeyword(nn.Module):
    def forward(self, x, *, flag=False, sigma=1.0):
        return x.flatten(1)[:, :3] * sigma


@pytest.mark.parametrize("network", [Told(), ToldByKeyword()], ids=["second argument", "keyword"])
def test_module_with_a_parameter_sigma_is_told_it(network):
    model = NoisyModel("classifier", network.eval())
    assert model.takes_sigma
    assert torch.equal(model(BATCH, 0.25), BATCH.flatten(1)[:, :3] * 0.25)


def test_compiled_module_is_still_told_the_sigma():
    model = NoisyModel("classifier", torch.compile(Told().eval(), backend="eager"))
    assert model.takes_sigma


def test_parameter_of_another_name_is_not_taken_for_sigma():
    class Other(nn.Module):
        def forward(self, x, noise_level=None):
            assert noise_level is None
            return x.flatten(1)

    assert not NoisyModel("classifier", Other().eval()).takes_sigma


# The fingerprint


def test_fingerprint_is_that_of_equal_weights():
    assert NoisyModel("a", linear()).fingerprint == NoisyModel("b", linear()).fingerprint
    assert len(NoisyModel("a", linear()).fingerprint) == 32


def changed(change):
    network = linear()
    change(network)
    return network.eval()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(linear(seed=1), id="other weights"),
        pytest.param(changed(lambda n: n[1].bias.data[0].add_(1e-7)), id="one weight in its last bits"),
        pytest.param(changed(lambda n: n[1].weight.data.copy_(n[1].weight.data.flip(0))), id="rows exchanged"),
        pytest.param(changed(lambda n: n.append(nn.ReLU())), id="another layer without weights"),
        pytest.param(changed(lambda n: n.double()), id="another precision"),
        pytest.param(changed(lambda n: n.register_buffer("mean", torch.zeros(1))), id="another buffer"),
    ],
)
def test_fingerprint_of_a_different_network_differs(other):
    assert NoisyModel("a", other).fingerprint != NoisyModel("a", linear()).fingerprint


def test_fingerprint_follows_the_weights():
    """A model that is trained further under the same wrapper is another model."""
    network = linear()
    model = NoisyModel("classifier", network)
    before = model.fingerprint
    with torch.no_grad():
        network[1].weight += 1
    assert model.fingerprint != before
    assert model.fingerprint == NoisyModel("classifier", network).fingerprint


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool])
def test_weights_of_any_type_have_a_fingerprint(dtype):
    def network(value):
        made = nn.Flatten()
        made.register_buffer("kept", torch.full((2, 3), value).to(dtype))
        made.register_buffer("number", torch.tensor(value).to(dtype))  # no dimension at all
        made.register_buffer("empty", torch.zeros(0, dtype=dtype))
        return NoisyModel("classifier", made.eval())

    assert network(1).fingerprint == network(1).fingerprint
    assert network(1).fingerprint != network(0).fingerprint


def test_state_that_is_not_a_tensor_counts_too():
    class Extra(nn.Flatten):
        def __init__(self, kept):
            super().__init__()
            self.kept = kept

        def get_extra_state(self):
            return self.kept

    first, second = (NoisyModel("classifier", Extra({"scale": s}).eval()).fingerprint for s in (1, 2))
    assert first != second


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_networks_of_torchscript_are_asked_by_their_schema():
    class Told(nn.Module):
        def forward(self, x, sigma: float):
            return sigma * x.flatten(1)[:, :3]

    told, plain = (torch.jit.script(network.eval()) for network in (Told(), linear()))
    assert NoisyModel("told", told).takes_sigma
    assert not NoisyModel("plain", plain).takes_sigma
    assert not NoisyModel("plain", plain).takes_randomness
    assert NoisyModel("told", told)(BATCH, 0.5).tolist() == Told()(BATCH, 0.5).tolist()
    answer = Smoothed(plain, 0.5).certify(np.full((1, 4, 4), 9, dtype=np.uint8), n=200, n0=50, alpha=0.01, seed=1)
    assert answer == Smoothed(linear(), 0.5).certify(
        np.full((1, 4, 4), 9, dtype=np.uint8), n=200, n0=50, alpha=0.01, seed=1
    )
