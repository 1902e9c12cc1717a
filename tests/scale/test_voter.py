"""What goes on inside a worker. It is an ordinary object, so no Ray is needed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from odd_networks import SIGMA, SOURCE, Answering, Asking, Exact, Poisoned, Starving, alone, engine, images, same_counts

from dualrs.errors import BadModel, OutOfMemory
from dualrs.models.noisy import NoisyModel
from dualrs.sampling import batches
from dualrs.sampling.noise import draw_block
from dualrs.scale.networks import pack_networks, unpack_networks
from dualrs.scale.parcels import Format, Parcel, Settings
from dualrs.scale.voter import Voter
from dualrs.votes import Stage

cloudpickle = pytest.importorskip("ray.cloudpickle", reason="dualrs[scale] is not installed")


def voter(network, picture, compile=False):
    """A worker with one network, and what it says of itself."""
    made = engine(network)
    worker = Voter(pack_networks([made.models], cloudpickle), [Format(50, "float32", compile)], "cpu", 1)
    (ready,) = worker.prepare([Settings(0, None, made.noise, picture)])
    return worker, ready


def vote(worker, ready, work, per_parcel):
    """Have a worker count what a work asks for, in parcels of so many inputs that it gets all at once."""
    groups = []
    while requests := work.more():
        groups.append(requests)
    parcels = [list(chain(*groups[k : k + per_parcel])) for k in range(0, len(groups), per_parcel)]
    with ThreadPoolExecutor(len(parcels)) as threads:
        found = threads.map(worker.vote, [Parcel.pack(requests, work.pixels, SOURCE) for requests in parcels])
        failures = {}
        for requests, counted in zip(parcels, found, strict=True):
            for request, counts, seconds in counted.unpack(requests, [ready.answers]):
                work.deliver(request, counts, seconds)
            failures |= counted.failures
    return failures


@pytest.mark.parametrize("per_parcel", [1, 4, 20])
def test_counts_are_those_of_an_engine(per_parcel):
    work = Asking(images(20))
    assert vote(*voter(Exact(), work.images["image 0"]), work, per_parcel) == {}
    same_counts(alone(work), work)


class Drawing(Exact):
    """Exact answers, shuffled by numbers that it draws."""

    def forward(self, x, randomness):
        return super().forward(x) * randomness.rand(len(x), 3).round()


def test_a_worker_draws_for_networks_what_an_engine_does():
    work = Asking(images(6))
    assert vote(*voter(Drawing(), work.images["image 0"]), work, 2) == {}
    same_counts(alone(work, Drawing()), work)


def test_one_input_in_several_parcels():
    work = Asking(images(1), votes=1000)
    worker, ready = voter(Exact(), work.images["image 0"])
    requests = work.more()
    parts = requests[:4], requests[4:]
    with ThreadPoolExecutor(2) as threads:
        parcels = [Parcel.pack(part, work.pixels, SOURCE) for part in parts]
        for part, counted in zip(parts, threads.map(worker.vote, parcels), strict=True):
            for request, counts, seconds in counted.unpack(part, [ready.answers]):
                work.deliver(request, counts, seconds)
    same_counts(alone(work), work)


def test_only_the_poisoned_input_fails_and_the_worker_goes_on():
    work = Asking(images(20, odd=13))
    worker, ready = voter(Poisoned(), work.images["image 0"])
    failures = vote(worker, ready, work, 5)
    assert list(failures) == ["image 13"]
    assert "NaN or infinite logits" in failures["image 13"]
    del work.images["image 13"]
    same_counts(alone(work), work)
    assert vote(worker, ready, Asking({"another": work.images["image 1"]}), 1) == {}


def test_worker_has_networks_compiled_where_the_driver_has():
    work = Asking(images(5))
    picture = work.images["image 0"]
    told = {}
    for compile in (False, True):
        _, ready = voter(Answering(), picture, compile)
        told[compile] = ready.identity[Stage.CLASS, SIGMA]
    assert told[True] != told[False]


def test_worker_with_one_core_draws_noise_with_one_thread(monkeypatch):
    seen = set()

    def draw(*address):
        seen.add(threading.current_thread().name)
        return draw_block(*address)

    work = Asking(images(20))
    worker, ready = voter(Exact(), work.images["image 0"])
    monkeypatch.setattr(batches, "draw_block", draw)
    assert vote(worker, ready, work, 20) == {}
    assert len(seen) == 1


def test_out_of_memory_is_handed_to_every_parcel():
    work = Asking(images(30))
    worker, ready = voter(Starving(), work.images["image 0"])
    with pytest.raises(OutOfMemory):
        vote(worker, ready, work, 10)


def test_network_that_cannot_be_sent_is_refused():
    network = Exact()
    network.lock = threading.Lock()
    with pytest.raises(BadModel, match=r"cannot be sent to workers \(.*lock.*pickle must be able"):
        pack_networks([engine(network).models], cloudpickle)


def test_what_networks_share_they_share_at_the_worker_too():
    shared = NoisyModel("classifier", Exact())
    packed = pack_networks([{(Stage.CLASS, SIGMA): shared}, {(Stage.CLASS, 1.0): shared}], cloudpickle)
    one, other = (model.module for models in unpack_networks(packed) for model in models.values())
    assert one is other
    assert one is not shared.module
