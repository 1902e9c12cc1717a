import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny networks run fastest on one thread, and leave the other cores to the noise."""
    torch.set_num_threads(1)
