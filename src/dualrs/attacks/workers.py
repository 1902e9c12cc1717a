"""A campaign on several processes: each attacks one input at a time. Ray starts them, here or on a cluster.

Enters: a model, the terms of a campaign and inputs. Leaves: rows, as they are done. A worker that is lost takes the
input in flight with it, which another one begins again.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from dualrs.attacks.attacker import Attacker, Terms
from dualrs.certificates import Certificate
from dualrs.data.images import Pixels
from dualrs.errors import DualrsError, WorkersFailed
from dualrs.models.hardware import keep_memory
from dualrs.scale.cluster import connected, divide, import_ray, resources
from dualrs.scale.networks import pack_networks, unpack_networks
from dualrs.scale.seats import cause, sentence
from dualrs.schemes import Scheme
from dualrs.smoothed import SmoothedModel
from dualrs.storage.attacks import Attack

_CHANCES = 3  # workers that one input may lose


class Job(NamedTuple):
    """A certificate to attack; what came of it, if it was tried before."""

    id: str
    image: Pixels
    claim: Certificate
    tried: Attack | None = None


class _Worker:
    """A process with networks of its own."""

    def __init__(
        self, networks: bytes, kind: Scheme[Any], terms: Terms, engine: tuple[int, str, str], threads: int | None
    ) -> None:
        keep_memory()
        if threads is not None:
            torch.set_num_threads(threads)
        (models,) = unpack_networks(networks)
        batch_size, dtype, device = engine
        model = SmoothedModel(kind, models, batch_size=batch_size, dtype=dtype, device=device)
        self._attacker = Attacker(model, terms)

    def attack(self, job: Job) -> Attack:
        return self._attacker.attack(*job)


def on_workers(
    model: SmoothedModel, terms: Terms, jobs: Sequence[Job], count: int | None, address: str | None
) -> Iterator[Attack]:
    """Attack inputs on ``count`` workers; by default one for each GPU or core of the cluster at an address."""
    ray, engine = import_ray(), model.engine
    packed = pack_networks([model.models], ray.cloudpickle)
    with connected(ray, count, address, len(packed)):
        share = divide(resources(ray), count, None if engine.device.type == "cpu" else engine.device.type)
        made_of = (
            ray.put(packed), model.kind, terms, (engine.batch_size, engine.dtype, share.device),
            None if share.gpus else share.cpus,
        )  # fmt: skip
        worker = ray.remote(_Worker).options(
            num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        waiting, lost = deque(jobs), Counter[str]()
        idle = [worker.remote(*made_of) for _ in range(min(share.workers, len(jobs)))]
        flying: dict[Any, tuple[Any, Job]] = {}
        while waiting or flying:
            while waiting and idle:
                actor, job = idle.pop(), waiting.popleft()
                flying[actor.attack.remote(job)] = actor, job
            (done,), _ = ray.wait(list(flying), num_returns=1)
            actor, job = flying.pop(done)
            try:
                row: Attack = ray.get(done)
            except ray.exceptions.RayError as error:
                if isinstance(reason := cause(error), DualrsError):
                    raise reason from error
                lost[job.id] += 1
                if lost[job.id] == _CHANCES:
                    raise WorkersFailed(
                        f"{_CHANCES} workers were lost while they attacked input {job.id}: {sentence(error)}"
                    ) from error
                waiting.appendleft(job)
                ray.kill(actor)
                idle.append(worker.remote(*made_of))
                continue
            idle.append(actor)
            yield row
