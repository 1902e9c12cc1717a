"""The Ray under the workers: started and stopped for one run, or a cluster that is there already.

Enters: how many workers, or an address. Leaves: the module `ray`, connected, and what each worker may take.
"""

import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from dualrs.errors import BadSetting, WorkersFailed, first_line
from dualrs.extras import need

_STORE = 200 << 20  # bytes of shared memory for parcels under way; networks come on top
_PATIENCE = 10.0  # seconds until a machine must have answered

# Nothing is reported to Ray's makers, a process that is given no GPU keeps its view of them as it was, and an error of
# one worker that nobody waits for, since another had it too, is not printed.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
}


@dataclass(frozen=True)
class Share:
    """What the workers of a run are: how many, and what each takes of its machine."""

    workers: int
    cpus: int
    gpus: int
    device: str


def import_ray() -> Any:
    """The module `ray`; a sentence where it is not installed."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    return need("ray", "scale", "working with several workers")


@contextmanager
def connected(ray: Any, workers: int | None, address: str | None, network_bytes: int) -> Iterator[None]:
    """Be connected to Ray: as this process is already, to the cluster at an address, or to one of our own."""
    if ray.is_initialized():
        yield
        return
    with ExitStack() as closing:
        if address is None:
            # Names of sockets in this folder must stay short, so it cannot be just anywhere.
            folder = tempfile.mkdtemp(prefix="dualrs-", dir="/tmp" if os.path.isdir("/tmp") else None)
            closing.callback(shutil.rmtree, folder, ignore_errors=True)
        closing.enter_context(_hushed(ray))
        closing.callback(ray.shutdown)
        if address is None:
            _start(ray, workers or 1, _STORE + 2 * network_bytes, folder)
        else:
            _join(ray, address)
        yield


@contextmanager
def _hushed(ray: Any) -> Iterator[None]:
    """Have Ray not print pages about every lost worker; ours are counted in the progress bar, and replaced."""
    module: Any = getattr(getattr(ray, "_private", None), "worker", None)
    printing = getattr(module, "print_to_stdstream", None)
    if printing is None:  # another version: it may print
        yield
        return
    module.print_to_stdstream = lambda *args, **options: None
    try:
        yield
    finally:
        module.print_to_stdstream = printing


def _join(ray: Any, address: str) -> None:
    if "://" in address:
        raise BadSetting(
            f"{address}: start dualrs on a machine of the cluster, and give its address as HOST:PORT, or auto; the "
            "ledger is written there"
        )
    try:
        ray.init(address=_knock(ray, address), log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # whatever Ray has to say
        raise WorkersFailed(
            f"there is no Ray cluster to join at {address} ({first_line(error)}); start one with `ray start --head`, "
            "and `ray start --address HOST:PORT` on every other machine. Where one runs that asks for a token, say "
            "RAY_AUTH_MODE=token in the environment, so that Ray shows yours"
        ) from error


def _knock(ray: Any, address: str) -> str | None:
    """What to tell Ray, once something answers there: by itself, it would go on trying for a quarter of an hour.

    For auto that is nothing: it joins the cluster that RAY_ADDRESS names, or that was started here last. Told "auto",
    it might join one that another run has started for itself alone.
    """
    place: str | None = address
    if address == "auto":
        services: Any = getattr(getattr(ray, "_private", None), "services", None)
        find = getattr(services, "canonicalize_bootstrap_address", None)
        if find is None:  # another version: it may try
            return address
        place = find(None)
        if place is None:
            raise ConnectionError("none was started on this machine")
    host, _, port = str(place).rpartition(":")
    socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    return None if address == "auto" else address


def _start(ray: Any, workers: int, store: int, folder: str) -> None:
    try:
        ray.init(
            address="local", num_cpus=max(workers, cores()), object_store_memory=store, include_dashboard=False,
            log_to_driver=False, logging_level=logging.ERROR, _temp_dir=folder,
        )  # fmt: skip
    except Exception as error:  # whatever Ray has to say, as when it takes too long
        raise WorkersFailed(f"Ray could not be started on this machine: {first_line(error)}") from error


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resources(ray: Any) -> list[Mapping[str, float]]:
    """What each machine of the cluster has."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def divide(machines: Sequence[Mapping[str, float]], workers: int | None, device: str | None) -> Share:
    """One GPU for each worker where there are GPUs, or a device is asked for; else an equal share of the cores.

    Without a number, as many workers as there are GPUs or, without GPUs, cores.
    """
    with_gpus = [m for m in machines if m.get("GPU", 0) >= 1]
    if device in (None, "cuda") and with_gpus:
        gpus = sum(int(m["GPU"]) for m in with_gpus)
        if workers is not None and workers > gpus:
            raise BadSetting(
                f"{workers} workers need a GPU each, and there are {gpus}; take --workers {gpus}, or --device cpu"
            )
        return Share(workers or gpus, min(int(m.get("CPU", 0) // m["GPU"]) for m in with_gpus), 1, "cuda")
    if device == "cuda":
        raise BadSetting("Ray knows of no GPU here; leave --device cuda out, or start Ray where there are GPUs")
    counts = [int(m.get("CPU", 0)) for m in machines]
    workers = sum(counts) if workers is None else workers
    for cpus in range(max(counts, default=0), 0, -1):
        if sum(count // cpus for count in counts) >= workers:
            return Share(workers, cpus, 0, device or "cpu")
    raise BadSetting(f"{workers} workers need a core each, and the cluster has {sum(counts)}; take fewer workers")
