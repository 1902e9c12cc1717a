"""What networks state, as votes: rounding, company, refusals."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadImage, BadModel, BadSetting
from dualrs.models.interval import Intervals
from dualrs.models.lipschitz import LipschitzNet, MarginBins
from dualrs.models.stated import LEVELS, StatedBins, Statement, stating
from small import Small, plain_net

BINS, STEP = 8, 0.25


class Told(nn.Module):
    """States the sum of an image's pixels, less 100, in thousandths; of three answers, the first pixel modulo 3."""

    def state(self, pixels):
        self.seen = len(pixels)
        numbers = pixels.flatten(1).double()
        return Statement((pixels[:, 0, 0, 0] % 3).long(), (numbers.sum(dim=1) - 100).clamp_min(0) / 1000, 3)


def images(*pixels):
    return torch.tensor(pixels).float().view(-1, 1, 1, 2) / LEVELS


def test_answer_and_radius_are_one_vote_rounded_down():
    told = StatedBins(Told(), BINS, STEP, "core")
    votes = told(images((1, 100), (2, 255), (255, 255), (0, 0))).argmax(dim=1)
    assert votes.tolist() == [1 * 8 + 0, 2 * 8 + 0, 0 * 8 + 1, 0]
    assert told.answers_per_class == BINS


def test_radius_beyond_the_last_bin_is_the_last():
    assert StatedBins(Told(), 2, 2.0**-8, "core")(images((255, 255))).argmax() == 1


def test_equal_images_are_asked_about_once():
    told = StatedBins(Told(), BINS, STEP, "core")
    told(images(*[(3, 4)] * 9, (4, 3)))
    assert told.network.seen == 2


def test_gradients_are_those_of_the_network():
    net = plain_net(1)
    x = torch.rand(2, 1, 6, 6, requires_grad=True)
    logits = StatedBins(stating(net), BINS, STEP, "core")(x)
    assert logits.shape == (2, 3 * BINS)
    (slope,) = torch.autograd.grad(logits[:, ::BINS].sum(), x)
    (expected,) = torch.autograd.grad(net(x).sum(), x)
    torch.testing.assert_close(slope, expected)


def test_network_that_states_nothing_is_refused():
    with pytest.raises(BadModel, match=r"has to state a radius.*got Small"):
        StatedBins(stating(Small()), BINS, STEP, "core network")


def test_router_with_another_number_of_answers_is_refused():
    with pytest.raises(BadModel, match="the router has 3 answers, and there are 2 candidates"):
        StatedBins(Told(), BINS, STEP, "router", expected=2)(images((1, 2)))


@pytest.mark.parametrize("layer", [nn.Sigmoid(), nn.MaxPool2d(2), nn.AvgPool2d(2, ceil_mode=True)])
def test_layer_without_interval_bounds_is_refused(layer):
    with pytest.raises(BadModel, match=f"no interval bounds for {type(layer).__name__}"):
        Intervals(nn.Sequential(layer, nn.Flatten(), nn.Linear(9, 2)).eval())


def test_network_without_a_linear_end_is_refused():
    with pytest.raises(BadModel, match="ends in a linear layer"):
        Intervals(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))


def test_interval_bounds_of_a_linear_network_are_its_truth():
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 2)).eval()
    pixels = torch.arange(36, dtype=torch.uint8).view(1, 1, 6, 6)
    with torch.no_grad():
        logits = net.double()(pixels.double() / LEVELS)[0]
        truth = float((logits.max() - logits.min()) / (net[1].weight[0] - net[1].weight[1]).norm())
    (found,) = Intervals(net).state(pixels).radius.tolist()
    assert truth - 4 / 2**12 < found <= truth


def test_lipschitz_network_looks_at_its_weights_again_when_they_change():
    torch.manual_seed(0)
    net = LipschitzNet(3, width=12, inner=(4, 4, 4), side=8).eval()
    pixels = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    before = net.state(pixels).radius
    net.head.data[0] += 5
    assert not torch.equal(net.state(pixels).radius, before)
    with pytest.raises(BadImage, match="colour images of side 8"):
        net.state(torch.zeros(1, 3, 16, 16, dtype=torch.uint8))


def test_margin_bins_state_the_distance_to_the_nearest_threshold():
    torch.manual_seed(0)
    net = LipschitzNet(3, width=12, inner=(4, 4, 4), side=8).eval()
    pixels = torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8)
    radius = net.state(pixels).radius
    low, high = radius.quantile(torch.tensor([0.3, 0.7]).double()).tolist()
    answer, stands, answers = MarginBins(net, (low, high)).state(pixels)
    assert answers == 3
    assert answer.tolist() == [int(r > low) + int(r > high) for r in radius.tolist()]
    expected = torch.stack([(radius - low).abs(), (radius - high).abs()]).amin(dim=0)
    assert (stands <= expected).all()
    torch.testing.assert_close(stands, expected, atol=1e-5, rtol=0)
    with pytest.raises(BadSetting, match="positive and rising"):
        MarginBins(net, (0.3, 0.2))
