"""Memory, precision and devices: what the engine does where a machine sets limits."""

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import Asking, Exact, Watched, engine, images, source, unit

from dualrs.errors import BadModel, BadSetting, OutOfMemory
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

IMAGES = images(3)
ONE = (Stage.CLASS, 0.5)
SEED = 4

COMPLAINTS = [
    pytest.param(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), id="torch on a GPU"),
    pytest.param(
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        id="torch on a CPU",
    ),
    pytest.param(RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"), id="Windows"),
    pytest.param(MemoryError("Unable to allocate 3 GiB for an array"), id="numpy"),
]


class Narrow(nn.Module):
    """Runs out of memory on batches above a limit."""

    def __init__(self, network, limit, error):
        super().__init__()
        self.network, self.limit, self.error = network, limit, error
        self.eval()

    def forward(self, x):
        if len(x) > self.limit:
            raise self.error
        return self.network(x)


def run(made, asked):
    work = Asking(IMAGES, asked)
    count([made], work, source(SEED))
    return work.counts


@pytest.mark.parametrize("error", COMPLAINTS)
def test_batch_size_is_halved_until_the_network_fits(error):
    watched = Watched(Exact(16))
    made = engine({ONE: Narrow(watched, 50, error)}, IMAGES["0"], batch_size=256)
    assert made.batch_size == 32
    watched.batches.clear()
    asked = [unit(name, 250) for name in IMAGES]
    counted = run(made, asked)
    assert {len(b) for b in watched.batches} == {32}
    small = run(engine({ONE: Exact(16)}, IMAGES["0"], batch_size=32), asked)
    for wanted in asked:
        np.testing.assert_array_equal(counted[wanted], small[wanted])


def test_largest_network_sets_the_one_shape_of_all():
    router, classifier = Watched(Exact(16, answers=2)), Watched(Exact(16))
    models = {(Stage.ROUTER, 0.5): router, ONE: Narrow(classifier, 20, MemoryError())}
    made = engine(models, IMAGES["0"], batch_size=64)
    classifier.batches.clear()
    run(made, [unit("0", 100, Stage.ROUTER), unit("0", 100)])
    assert {len(b) for b in router.batches} == {16}
    assert {len(b) for b in classifier.batches} == {16}


def test_odd_batch_sizes_are_halved_down_to_one():
    made = engine({ONE: Narrow(Exact(16), 1, MemoryError())}, IMAGES["0"], batch_size=7)
    assert made.batch_size == 1


class Mean(nn.Module):
    """Reads images of any size."""

    def forward(self, x):
        return torch.stack([x.mean(dim=(1, 2, 3)), 1 - x.mean(dim=(1, 2, 3))], dim=1)


@pytest.mark.parametrize(("side", "size"), [(32, 256), (37, 128), (64, 64), (224, 4), (1024, 4)])
def test_default_batch_is_smaller_for_large_images_on_a_cpu(side, size):
    """Networks are tried on whole batches: of 256 photographs these would take minutes and gigabytes."""
    made = Engine({ONE: NoisyModel("classifier", Mean().eval())}, threads=1)
    made.prepare(np.zeros((3, side, side), dtype=np.uint8))
    assert made.batch_size == size


class Wide(nn.Module):
    """Makes so many values of every image on its way, in one tensor of several that one call of torch returns."""

    def __init__(self, values):
        super().__init__()
        self.values = values
        self.eval()

    def forward(self, x):
        halves = x.flatten(1)[:, :1].repeat(1, 2 * self.values).chunk(2, dim=1)
        return torch.stack([half.sum(dim=1) for half in halves], dim=1)


@pytest.mark.parametrize(
    ("values", "threads", "size"),
    [(2048, 1, 256), (8192, 1, 64), (8192, 2, 64), (8192, 4, 64), (8192, 16, 64), (8192, 64, 256)],
)
def test_what_the_widest_layer_leaves_of_a_batch_stays_in_the_cache(values, threads, size):
    """In 4 MB for one thread, 2 for each of several; before it is chunked the tensor has twice as many values.

    Up to eight batches may run at once, so up to eight threads have a batch each.
    """
    made = Engine(
        {(Stage.CLASS, 0.1): NoisyModel("narrow", Mean().eval()), ONE: NoisyModel("wide", Wide(values))},
        threads=threads,
    )
    made.prepare(np.zeros((3, 8, 8), dtype=np.uint8))
    assert made.batch_size == size


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::dualrs.errors.NotCompiled")
def test_compiled_networks_are_measured_as_they_are():
    made = Engine({ONE: NoisyModel("wide", Wide(8192))}, threads=1, compile=True)
    made.prepare(np.zeros((3, 8, 8), dtype=np.uint8))
    assert made.batch_size == 64


@pytest.mark.parametrize("given", [256, 64, 48])
def test_batch_size_that_was_asked_for_stays_for_large_images(given):
    made = Engine({ONE: NoisyModel("classifier", Mean().eval())}, batch_size=given)
    assert made.asked_size == given
    made.prepare(np.zeros((3, 224, 224), dtype=np.uint8))
    assert made.batch_size == given


def test_batch_size_of_an_earlier_run_stays_for_large_images():
    made = Engine({ONE: NoisyModel("classifier", Mean().eval())})
    made.keep_shape(256)
    made.prepare(np.zeros((3, 96, 96), dtype=np.uint8))
    assert made.batch_size == 256


def test_network_that_does_not_fit_at_all_is_an_error():
    with pytest.raises(OutOfMemory, match="the classifier does not fit into memory at the batch size 1"):
        Engine({ONE: NoisyModel("classifier", Narrow(Exact(16), 0, MemoryError()))}).prepare(IMAGES["0"])


def test_batch_size_of_an_earlier_run_is_never_halved():
    made = Engine({ONE: NoisyModel("classifier", Narrow(Exact(16), 50, MemoryError()))}, batch_size=8)
    made.keep_shape(64)
    with pytest.raises(OutOfMemory, match="at the batch size 64; free memory, or start a new run"):
        made.prepare(IMAGES["0"])


def test_other_errors_of_the_network_do_not_shrink_the_batch():
    made = Engine({ONE: NoisyModel("classifier", Narrow(Exact(16), 0, RuntimeError("mat1 and mat2")))}, batch_size=64)
    with pytest.raises(BadModel, match="mat1 and mat2"):
        made.prepare(IMAGES["0"])
    assert made.batch_size == 64


@pytest.mark.parametrize("error", COMPLAINTS)
def test_memory_that_runs_out_in_the_middle_stops_the_run(error):
    """By then votes of this shape are on record: another shape would be another run."""
    narrow = Narrow(Exact(16), 64, error)
    made = engine({ONE: narrow}, IMAGES["0"], batch_size=64)

    class Filling(Asking):
        def batch_done(self):
            super().batch_done()
            if self.batches == 3:
                narrow.limit = 10

    work = Filling(IMAGES, [unit("0", 100), unit("1", 900)])
    with pytest.raises(OutOfMemory, match="in the middle of a run; what was recorded is kept"):
        count([made], work, source(SEED))
    assert list(work.counts) == [unit("0", 100)]


# Precision


class Precise(nn.Module):
    """A convolutional network; remembers the precision of its logits."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 4)
        )
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=generator) / 3
        self.dtypes = set()
        self.eval()

    def forward(self, x):
        logits = self.body(x - 0.5)
        self.dtypes.add(logits.dtype)
        return logits


@pytest.mark.filterwarnings("ignore::dualrs.errors.RoundingDependent")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_reduced_precision_runs_and_changes_few_votes(dtype):
    asked = [unit(name, 1000) for name in IMAGES]
    network = Precise()
    low = run(engine({ONE: network}, IMAGES["0"], batch_size=250, dtype=dtype), asked)
    assert network.dtypes == {getattr(torch, dtype)}
    full = run(engine({ONE: Precise()}, IMAGES["0"], batch_size=250), asked)
    for wanted in asked:
        assert low[wanted].sum() == 1000
        assert np.count_nonzero(full[wanted].sum(axis=0)) > 1  # an undivided network would agree whatever happens
        # every changed vote moves two counts by one; eight bits of mantissa leave few ties
        assert np.abs(low[wanted] - full[wanted]).sum() / 2 <= 30


# Devices


def test_networks_stay_where_they_are_by_default():
    assert Engine({ONE: NoisyModel("classifier", Exact(16))}).device == torch.device("cpu")


def test_network_without_parameters_runs_on_the_cpu():
    assert NoisyModel("classifier", nn.Flatten().eval()).device == torch.device("cpu")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", "tpu:0"])
def test_unknown_device_is_refused(device):
    with pytest.raises(BadSetting, match="unknown device"):
        Engine({ONE: NoisyModel("classifier", Exact(16))}, device=device)


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(
            "cuda", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU"), id="cuda"
        ),
        pytest.param(
            "mps", marks=pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has mps"), id="mps"
        ),
    ],
)
@pytest.mark.parametrize("network", [nn.Linear(2, 2).eval(), nn.Flatten().eval()], ids=["weights", "no weights"])
def test_device_that_this_machine_lacks_is_refused_in_a_sentence(device, network):
    with pytest.raises(BadSetting, match=f"unknown device '{device}', or this machine has none"):
        Engine({ONE: NoisyModel("classifier", network)}, device=device)


def test_networks_on_different_devices_need_to_be_told_where_to_go():
    elsewhere = nn.Linear(16, 2, device="meta").eval()
    models = {(Stage.ROUTER, 0.5): NoisyModel("router", elsewhere), ONE: NoisyModel("classifier", Exact(16))}
    with pytest.raises(BadSetting, match=r"different devices .*pass device="):
        Engine(models)
