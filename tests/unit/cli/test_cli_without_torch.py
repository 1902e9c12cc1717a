"""What works from files alone works where torch cannot be imported: every such command, and `dualrs.open`."""

import os
import subprocess
import sys

import pytest

from conftest import NETWORKS, TWO_STAGES
from dualrs.cli import main

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Blocked())
"""
COMMAND_LINE = BLOCK + "from dualrs.cli import main\nmain()"
CIFAR10 = ("--classifier", "net.py:ten", "--data", "cifar10:subset", "--inputs", "0:3")
SURE = """
ten = Half([k / 9 for k in range(10)]).eval()


def many():
    return data()[0].repeat(2, 1, 1, 1), data()[1].repeat(2)
"""
CASCADE = ("--classifier", "net.py:classifier", "--sigmas", "0.1,0.2", "--data", "net.py:many", "--n", "50")
TEACH = ("--sigmas", "0.1,0.2", "--data", "net.py:data", "--n", "50", "--seed", "0")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Ledgers of every kind, a table of them and an export, made where torch is."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "net.py").write_text(NETWORKS + SURE)
    (folder / "cascade.toml").write_text('data = "a"\n[model]\nclassifier = "b"\nsigmas = [0.1, 0.2]\n')
    commands = [
        ("certify", *TWO_STAGES, "--all-votes", "-o", "run.ledger"),
        ("certify", *TWO_STAGES, "--inputs", "0:6", "-o", "first.ledger"),
        ("certify", *TWO_STAGES, "--inputs", "6:12", "-o", "second.ledger"),
        ("certify", *TWO_STAGES, *CIFAR10, "-o", "images.ledger"),
        ("certify", *CASCADE, "--all-votes", "-o", "cascade.ledger"),
        ("label", *TEACH, "--classifier", "net.py:classifier", "-o", "labels.ledger"),
        ("assign", *TEACH, "--router", "net.py:router", "--sigma-e", "0.2", "-o", "assigned.ledger"),
        ("compare", "run.ledger", "-o", "table.csv"),
        ("export", "run.ledger", "theirs.tsv"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in commands:
            patch.setattr(sys, "argv", ["dualrs", *words])
            with pytest.raises(SystemExit) as stop:
                main()
            assert stop.value.code in (0, None), words
    return folder


def run(program, *words, cwd):
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--help", "Certify and look"),
        ("show run.ledger", "certified accuracy (%) at L2 radius"),
        ("show run.ledger --rule paper --alpha 0.01", "rule paper · alpha 0.01"),
        ("show labels.ledger", "best for"),
        ("show assigned.ledger", "undecided"),
        ("compare run.ledger --baseline sigma-0.1", "multiscale"),
        ("compare run.ledger theirs.tsv --format markdown", "theirs"),
        ("tune cascade.ledger --write cascade.toml", "wrote rule cascade"),
        ("report run.ledger -o page.html", "wrote page.html"),
        ("figure accuracy run.ledger -o curve.svg", "drew curve.svg"),
        ("why run.ledger 3", "votes of the router"),
        ("why images.ledger 0 -o why.png", "drew why.png"),
        ("verify run.ledger", "12 certificates follow from their votes; nothing was altered"),
        ("verify labels.ledger assigned.ledger", "of 12 inputs; nothing was altered"),
        ("verify run.ledger --table table.csv", "rows follow from the votes"),
        ("export run.ledger rows.csv", "wrote 12 rows to rows.csv"),
        ("import theirs.tsv -o clean.csv", "wrote 12 rows to clean.csv"),
        ("merge whole.ledger first.ledger second.ledger", "whole.ledger: 12 certificates"),
        ("status run.ledger", "12 of 12 inputs done (100.0%)"),
        ("status labels.ledger", "12 of 12 inputs done (100.0%)"),
    ],
)
def test_command_needs_no_torch(files, command, said):
    done = run(COMMAND_LINE, *command.split(), cwd=files)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "torch" not in done.stderr


def test_a_page_without_torch_has_its_images(files):
    assert run(COMMAND_LINE, "report", "images.ledger", "-o", "pictures.html", cwd=files).returncode == 0
    assert "data:image/png;base64" in (files / "pictures.html").read_text()


def test_votes_are_opened_and_certified_without_torch(files):
    program = BLOCK + (
        "import dualrs\n"
        "sample = dualrs.open('run.ledger')\n"
        "print(sample)\n"
        "print(len(sample.certify('paper', alpha=0.01)))\n"
        "print(dualrs.ABSTAIN, dualrs.Certificates.__name__, dualrs.Grid.__name__)\n"
    )
    done = run(program, cwd=files)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith("<Sample: 12 inputs")
    assert others == ["12", "-1 Certificates Grid"]


@pytest.mark.parametrize("module", ["data.sources", "training.labels", "training.assigned", "progress", "config"])
def test_module_is_imported_without_torch(module, tmp_path):
    done = run(f"{BLOCK}import dualrs.{module}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_block_can_fail(files):
    done = run(COMMAND_LINE, "evaluate", "net.py:classifier", "--data", "net.py:data", cwd=files)
    assert done.returncode != 0
    assert "torch is not here" in done.stderr
