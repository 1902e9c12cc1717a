"""What each worker takes of its machine, and what is said where there is no Ray to work with."""

import sys

import pytest

from dualrs.errors import BadSetting, MissingExtra, WorkersFailed
from dualrs.scale.cluster import Share, connected, divide, import_ray

MACHINE = {"CPU": 8.0, "memory": 1e9}
WITH_GPUS = {"CPU": 32.0, "GPU": 4.0}


@pytest.mark.parametrize(
    ("machines", "workers", "device", "share"),
    [
        ([MACHINE], 2, None, Share(2, 4, 0, "cpu")),
        ([MACHINE], 3, None, Share(3, 2, 0, "cpu")),
        ([MACHINE], None, None, Share(8, 1, 0, "cpu")),
        ([MACHINE, MACHINE], 2, None, Share(2, 8, 0, "cpu")),
        ([MACHINE, MACHINE], 3, None, Share(3, 4, 0, "cpu")),
        ([{"CPU": 2.0}, MACHINE], 3, None, Share(3, 2, 0, "cpu")),
        ([WITH_GPUS, MACHINE], None, None, Share(4, 8, 1, "cuda")),
        ([WITH_GPUS, WITH_GPUS], 5, "cuda", Share(5, 8, 1, "cuda")),
        ([{"GPU": 2.0}], None, None, Share(2, 0, 1, "cuda")),
        ([WITH_GPUS], 8, "cpu", Share(8, 4, 0, "cpu")),
    ],
)
def test_every_worker_has_a_gpu_or_a_share_of_the_cores(machines, workers, device, share):
    assert divide(machines, workers, device) == share


@pytest.mark.parametrize(
    ("machines", "workers", "device", "sentence"),
    [
        ([MACHINE], 9, None, "9 workers need a core each, and the cluster has 8"),
        ([WITH_GPUS], 5, None, "5 workers need a GPU each, and there are 4"),
        ([MACHINE], 2, "cuda", "Ray knows of no GPU here"),
        ([], None, None, "the cluster has 0"),
    ],
)
def test_what_cannot_be_divided_is_refused(machines, workers, device, sentence):
    with pytest.raises(BadSetting, match=sentence):
        divide(machines, workers, device)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"several workers needs the package ray.*pip install 'dualrs\[scale\]'"):
        import_ray()


def test_address_must_be_one_of_a_machine():
    pytest.importorskip("ray")
    with pytest.raises(BadSetting, match=r"as HOST:PORT, or auto"), connected(import_ray(), None, "ray://a:10001", 0):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_cluster_that_is_not_there_is_named(address):
    pytest.importorskip("ray")
    sentence = rf"no Ray cluster to join at {address} .*ray start --head"
    with pytest.raises(WorkersFailed, match=sentence), connected(import_ray(), None, address, 0):
        pass


def test_cluster_that_has_gone_is_not_waited_for(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # what Ray takes auto for
    sentence = r"no Ray cluster to join at auto .*refused.*RAY_AUTH_MODE=token"
    with pytest.raises(WorkersFailed, match=sentence), connected(import_ray(), None, "auto", 0):
        pass
