"""The layout of images in memory: channels last on a CPU, for networks that take it, answer alike and gain by it."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import Asking, engine, images, source, unit

from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

IMAGES = images(3, shape=(3, 8, 8))
ONE, OTHER = (Stage.CLASS, 0.5), (Stage.ROUTER, 0.5)


class Seeing(nn.Module):
    """Convolves, and remembers in which layout it got each batch; ``read`` makes numbers of what is convolved."""

    def __init__(self, width=4, read=lambda x: x.flatten(1), seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layer, self.head, self.read = nn.Conv2d(3, width, 3, padding=1), nn.Linear(64 * width, 3), read
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=generator) / math.sqrt(p[0].numel())
        self.last = []
        self.eval()

    def forward(self, x):
        self.last.append(x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous())
        return self.head(self.read(self.layer(x).relu()))


def counted(network, **options):
    """Votes of a run, and whether each of its batches had channels last."""
    made = engine({ONE: network}, IMAGES["0"], **options)
    network.last.clear()
    work = Asking(IMAGES, [unit(name, 200) for name in IMAGES])
    count([made], work, source(1))
    return work.counts, set(network.last)


def by_storage(x):
    """What stands in memory, in the order in which it stands there: as code would read it that knows one layout."""
    return x.permute(0, 2, 3, 1).reshape(len(x), -1) if x.stride(1) == 1 else x.flatten(1)


@pytest.mark.parametrize("options", [{}, {"batch_size": 16}], ids=["default batches", "batches of a size asked for"])
def test_convolutions_get_channels_last_and_vote_the_same(options):
    votes, last = counted(Seeing(), **options)
    assert last == {True}
    # A reader of strides has the same numbers by another way, and is given the other layout.
    plain, first = counted(Seeing(read=lambda x: x.view(len(x), -1)), **options)
    assert first == {False}
    for asked, each in votes.items():
        np.testing.assert_array_equal(each, plain[asked])


def test_network_that_reads_memory_as_it_stands_is_noticed_by_its_answers():
    """It would not fail, but answer to scrambled images."""
    votes, last = counted(Seeing(read=by_storage))
    assert last == {False}
    for asked, each in counted(Seeing())[0].items():
        np.testing.assert_array_equal(votes[asked], each)


@pytest.mark.parametrize(("width", "gains"), [(4, True), (400_000, False)], ids=["small kernels", "43 MB of kernels"])
def test_kernels_too_large_to_be_laid_out_anew_at_each_call_are_left_alone(width, gains):
    network = Seeing()
    network.unused = nn.Conv2d(3, width, 3).eval()
    made = Engine({ONE: NoisyModel("classifier", network)})
    made.prepare(IMAGES["0"])
    assert made.machine.channels_last == gains


def test_without_convolutions_nothing_is_laid_out():
    made = Engine({ONE: NoisyModel("classifier", nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval())})
    made.prepare(IMAGES["0"])
    assert not made.machine.channels_last


def test_stages_that_see_the_same_copies_need_one_layout():
    networks = {OTHER: Seeing(read=lambda x: x.view(len(x), -1)), ONE: Seeing()}
    made = Engine({slot: NoisyModel(slot[0], network) for slot, network in networks.items()})
    made.prepare(IMAGES["0"])
    assert not made.machine.channels_last


def test_members_of_a_panel_see_the_same_layout_and_keep_their_own():
    networks = [Seeing(), Seeing(read=lambda x: x.view(len(x), -1), seed=1)]
    panel = [engine({ONE: network}, IMAGES["0"]) for network in networks]
    for network in networks:
        network.last.clear()
    count(panel, Asking(IMAGES, [unit("0", 200)]), source(1))
    assert set(networks[0].last) == {False}
    assert [member.machine.channels_last for member in panel] == [True, False]
