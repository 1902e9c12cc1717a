"""What holds for whoever counts votes, in this process or in others: one entry each, and the suite.

The network sums integers in doubles: nothing rounds, so that counts must be those of a slow loop to the last one.
"""

import sys
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import DualSmoothed
from dualrs.errors import DualrsError
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NOISE, SHARED, NoiseSource, draw_block
from dualrs.sampling.work import Request
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream, Unit

IMAGES = {str(k): p for k, p in enumerate(np.random.default_rng(0).integers(0, 256, (4, 1, 4, 4), dtype=np.uint8))}
SOURCE = NoiseSource(Purpose.CERTIFY, 3)
SIGMAS, SIGMA_E = (0.25, 0.5), 0.5


class Sums(nn.Module):
    """Integer sums of integer pixels."""

    def __init__(self, answers, seed):
        super().__init__()
        weights = np.random.default_rng(seed).integers(-4, 5, (16, answers))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float64))
        self.register_buffer("shift", torch.arange(answers) / 4 - 128 * self.weights.sum(dim=0))
        self.eval()

    def forward(self, x):
        return (x.flatten(1).double() * 255).round() @ self.weights + self.shift


NETWORKS = {
    (Stage.ROUTER, SIGMA_E): Sums(2, seed=1),
    (Stage.CLASS, 0.25): Sums(3, seed=2),
    (Stage.CLASS, 0.5): Sums(3, seed=3),
}


def engine(share=False):
    models = {slot: NoisyModel(f"{slot[0]} at {slot[1]}", network) for slot, network in NETWORKS.items()}
    return Engine(models, batch_size=64, share=share)


@contextmanager
def this_process():
    yield nullcontext


@contextmanager
def workers():
    """A process under Ray, for as long as it is needed."""
    from dualrs.scale.cluster import connected, import_ray
    from dualrs.scale.workers import Workers

    @contextmanager
    def in_their_place(engines):
        with Workers(*engines, count=1) as made:
            yield made.executors

    with connected(import_ray(), 1, None, 0):
        yield in_their_place


BACKENDS = [
    pytest.param(this_process, id="engine"),
    pytest.param(
        workers,
        id="workers",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(find_spec("ray") is None, reason="dualrs[scale] is not installed"),
            pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found through /proc"),
        ],
    ),
]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    """From engines to those who count in their place, while they are there."""
    with request.param() as made:
        yield made


@pytest.fixture
def put_to_work(backend):
    with ExitStack() as stack:
        yield lambda *engines: stack.enter_context(backend(engines))


@pytest.fixture
def counting(put_to_work):
    """A counter of the three networks, prepared."""
    (made,) = put_to_work(engine())
    made.prepare(IMAGES["0"])
    return made


@dataclass
class Asking:
    """Asks for some units of each image, of each member of a panel, and keeps the counts."""

    units: list
    members: int = 1
    counts: dict = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self):
        self._names = iter(IMAGES)

    def more(self):
        name = next(self._names, None)
        if name is None:
            return None
        return [Request(Unit(name, *unit), k) for k in range(self.members) for unit in self.units]

    def pixels(self, input_id):
        return IMAGES[input_id]

    def deliver(self, request, counts, seconds):
        assert request not in self.counts, "a unit was delivered twice"
        self.counts[request], self.seconds = counts, self.seconds + seconds
        return ()

    def batch_done(self):
        pass


UNITS = [
    (Stream(Stage.ROUTER, Part.SELECTION, SIGMA_E), 0, 30),
    (Stream(Stage.ROUTER, Part.ESTIMATION, SIGMA_E), 0, 250),
    (Stream(Stage.CLASS, Part.ESTIMATION, 0.25), 100, 230),
    (Stream(Stage.CLASS, Part.ESTIMATION, 0.5), 0, 120),
]


def slow_counts(unit, noise_of=None):
    """Counts of a unit, one noisy copy at a time."""
    image, network = IMAGES[unit.input_id], NETWORKS[unit.stream.stage, unit.stream.sigma]
    counts = np.zeros((unit.blocks, 2 if unit.stream.stage is Stage.ROUTER else 3), dtype=np.int64)
    for vote in range(unit.start, unit.stop):
        block, offset = divmod(vote, BLOCK)
        noise = draw_block(SOURCE, unit.input_id, image, noise_of or unit.stream, block)[offset]
        noisy = (torch.from_numpy(noise).view(1, *image.shape) + torch.from_numpy(image)).float() / 255
        counts[(vote - unit.start) // BLOCK, int(network(noisy).argmax())] += 1
    return counts


def count(panel, work):
    panel[0].counter(panel, work, SOURCE)
    return work.counts


def test_counts_are_those_of_a_slow_loop(counting):
    work = Asking(UNITS)
    found = count([counting], work)
    assert len(found) == len(UNITS) * len(IMAGES)
    for request, counts in found.items():
        np.testing.assert_array_equal(counts, slow_counts(request.unit))
    assert work.seconds > 0


def test_what_a_run_has_to_know_is_known_once_it_was_tried(counting):
    plain = engine()
    plain.prepare(IMAGES["0"])
    assert dict(counting.answers) == dict(plain.answers) == {s: 2 if s[0] is Stage.ROUTER else 3 for s in NETWORKS}
    assert counting.models.keys() == NETWORKS.keys()
    for name in ("batch_size", "dtype", "compile", "device", "noise"):
        assert getattr(counting, name) == getattr(plain, name)


def test_networks_are_known_again_by_their_answers(counting):
    plain = engine()
    plain.prepare(IMAGES["0"])
    assert dict(counting.identify(IMAGES["1"])) == dict(plain.identify(IMAGES["1"]))


def test_panel_counts_for_each_member_what_it_would_count_alone(put_to_work):
    panel = put_to_work(engine(), engine())
    for member in panel:
        member.prepare(IMAGES["0"])
    found = count(panel, Asking(UNITS, members=2))
    assert len(found) == 2 * len(UNITS) * len(IMAGES)
    for request, counts in found.items():
        np.testing.assert_array_equal(counts, slow_counts(request.unit))


@pytest.mark.parametrize(
    ("noise", "stage"), [(NOISE + SHARED, Stage.ROUTER), (NOISE, Stage.CLASS)], ids=["shared", "own"]
)
def test_shape_and_noise_of_an_earlier_run_are_taken(put_to_work, noise, stage):
    """The expert at the router's sigma votes on the router's copies, unless the earlier run did without."""
    at_router = (Stream(Stage.CLASS, Part.ESTIMATION, SIGMA_E), 0, 120)
    (made,) = put_to_work(engine(share=True))
    made.keep_shape(50)
    made.keep_noise(noise)
    made.prepare(IMAGES["0"])
    assert (made.batch_size, made.noise) == (50, noise)
    for request, counts in count([made], Asking([at_router])).items():
        expected = slow_counts(request.unit, Stream(stage, Part.ESTIMATION, SIGMA_E))
        np.testing.assert_array_equal(counts, expected)


def test_network_without_finite_logits_is_refused(put_to_work):
    class Broken(Sums):
        def forward(self, x):
            return super().forward(x) * torch.nan

    (made,) = put_to_work(Engine({(Stage.CLASS, 0.5): NoisyModel("classifier", Broken(3, 1))}, batch_size=64))
    with pytest.raises(DualrsError, match="the classifier returned NaN or infinite"):
        made.prepare(IMAGES["0"])


def test_model_certifies_through_it(put_to_work):
    images, settings = np.stack(list(IMAGES.values())), {"n": 300, "n0": 30, "alpha": 0.05, "seed": 1}

    def model():
        experts = {sigma: NETWORKS[Stage.CLASS, sigma] for sigma in SIGMAS}
        return DualSmoothed(NETWORKS[Stage.ROUTER, SIGMA_E], experts, SIGMAS, SIGMA_E, batch_size=64)

    through = model()
    (through.engine,) = put_to_work(through.engine)
    assert list(through.certify(images, **settings)) == list(model().certify(images, **settings))
