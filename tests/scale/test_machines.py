"""A cluster of two machines (two sets of Ray's processes on this one) that is joined by its address, and loses one."""

import sys

import pytest
from odd_networks import SOURCE, Asking, Exact, alone, engine, images, same_counts

from dualrs.scale.cluster import import_ray
from dualrs.scale.workers import Workers

pytest.importorskip("ray", reason="dualrs[scale] is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="such clusters are made on Linux")

STORE = 100 << 20


@pytest.fixture
def two_machines():
    import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


def test_machine_that_is_gone_changes_no_vote(two_machines):
    def lose_one(counted):
        if counted == 50:
            two_machines.remove_node(next(iter(two_machines.worker_nodes)), allow_graceful=False)

    work = Asking(images(60), votes=400, each=lose_one)
    with Workers(engine(Exact(pause=0.01)), address=two_machines.address) as workers:
        workers.executor.prepare(work.images["image 0"])
        assert workers.alive == workers.wanted == 2, "one for each core"
        workers.count([workers.executor], work, SOURCE)
        assert workers.alive == 1
    same_counts(alone(work), work)
