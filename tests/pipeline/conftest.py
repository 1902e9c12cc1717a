import shutil

import pytest
import toy
from small_run import RECIPE, dualrs


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a whole, unbroken run of the recipe, which lies beside it."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copy(toy.__file__, folder)
    (folder / "toy.toml").write_text(RECIPE)
    assert dualrs("rounds", folder / "toy.toml", "-o", folder / "run") == 0
    return folder / "run"
