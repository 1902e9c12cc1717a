import os
from pathlib import Path

import pytest
import torch

TESTS = Path(__file__).parent
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of commands that tests run: several at once would fight for the cores

# What `make test-quick` leaves out, besides tests with the marker: what kills, trains, simulates, or takes many votes.
SLOW = (
    "browser",
    "conformance/test_every_denoiser.py",
    "conformance/test_every_scheme.py",
    "conformance/test_round_trips.py",
    "examples",
    "faults",
    "golden/test_made_documents.py",
    "pipeline",
    "property",
    "scale",
    "unit/certificates/test_cascade_definition.py",
    "unit/cli/test_cli_report.py",
    "unit/cli/test_cli_router.py",
    "unit/cli/test_cli_status.py",
    "unit/cli/test_cli_tune.py",
    "unit/cli/test_cli_without_torch.py",
    "unit/jobs",
    "unit/models/test_hub.py",
    "unit/policy/test_adaptive_policy.py",
    "unit/sampling/test_compiled.py",
    "unit/sampling/test_shared_copies.py",
    "unit/sampling/test_validity_through_the_engine.py",
    "unit/smoothed",
    "unit/storage/test_lease.py",
    "unit/storage/test_ledger_faults.py",
    "unit/test_sample.py",
    "unit/training/test_base.py",
    "unit/training/test_loop.py",
    "unit/training/test_processes.py",
    "validity",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if any(item.path.is_relative_to(TESTS / place) for place in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny networks run fastest on one thread, and leave the other cores to the noise."""
    torch.set_num_threads(1)
