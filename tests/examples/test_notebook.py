"""The notebook runs from top to bottom, and is kept without outputs, which would grow stale."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_certificates.ipynb"
RUN = """
import json, nbformat, sys
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
print(json.dumps([cell.get("outputs", []) for cell in notebook.cells]))
"""


def cells(kind):
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == kind]


def test_notebook_is_kept_without_outputs():
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells("code"))
    assert json.loads(NOTEBOOK.read_text())["metadata"]["kernelspec"]["name"] == "python3"  # as Colab has it


@pytest.mark.slow
def test_notebook_runs_from_top_to_bottom(tmp_path):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason="the notebook needs the extra docs: pip install 'dualrs[docs]'")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, NOTEBOOK], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    outputs = [output for cell in json.loads(done.stdout.splitlines()[-1]) for output in cell]
    said = "".join(text for output in outputs for text in output.get("text", ""))
    shown = [output["data"] for output in outputs if "data" in output]
    assert "within L2 radius" in said
    assert sum("image/png" in data for data in shown) == 2
    assert [data["text/plain"] for data in shown].count("True") == 1  # the ledger gives the same certificates
    assert not [output for output in outputs if output["output_type"] == "error"]
