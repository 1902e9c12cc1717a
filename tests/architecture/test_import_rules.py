"""Imports point one way only. A companion proves that the check can fail."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dualrs"

ARITHMETIC = {"errors", "files", "theory", "votes", "certificates", "policy", "schemes"}
SAMPLING = {"errors", "votes", "data", "models", "sampling"}
# A room, and the rooms that it may import besides itself.
MAY_IMPORT = {
    "version": set(),
    "errors": set(),
    "theory": {"errors"},
    "votes": {"errors", "theory"},
    "certificates": {"errors", "theory", "votes"},
    "policy": {"errors", "theory", "votes", "certificates"},
    "schemes": {"errors", "theory", "votes", "certificates", "policy"},
    "storage": ARITHMETIC - {"policy"},
    "sample": ARITHMETIC - {"policy"} | {"storage"},
    "report": ARITHMETIC - {"policy"} | {"extras", "storage"},
    "extras": {"errors"},
    "files": {"errors"},
    "progress": set(),
    "references": {"errors"},
    "data": {"errors", "extras", "references"},
    "models": {"errors", "extras", "files", "references"},
    "sampling": {"errors", "votes", "data", "models"},
    "scale": SAMPLING | {"extras"},
    "jobs": SAMPLING | ARITHMETIC | {"storage"},
    "smoothed": SAMPLING | ARITHMETIC | {"storage", "jobs", "sample", "progress", "__init__"},
    "attacks": SAMPLING | {"schemes", "certificates", "storage", "sample", "scale", "jobs", "smoothed"},
    "config": {"errors", "data", "models"},
    "training": ARITHMETIC - {"policy"} | {"extras", "data", "models", "storage"},
    "hub": ARITHMETIC
    | {"config", "extras", "files", "jobs", "models", "pipeline", "report", "smoothed", "storage", "version"},
    "pipeline": SAMPLING | {"files", "config", "references", "schemes", "smoothed", "jobs", "training"},
}
FRONT_DOORS = {"__init__", "__main__", "cli"}  # may import anything
MAY_IMPORT_TORCH = {
    "models",
    "sampling",
    "scale",
    "smoothed",
    "attacks",
    "training",
    "pipeline",
    "hub",
} | FRONT_DOORS


def violations(source: Path) -> list[str]:
    """Every import in a source tree that points the wrong way."""
    found = []
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).parts[0].removesuffix(".py")
        for module in imported(ast.parse(path.read_text())):
            top, _, rest = module.partition(".")
            if top == "torch" and room not in MAY_IMPORT_TORCH:
                found.append(f"{path.name} ({room}) imports torch")
            if top != "dualrs" or room in FRONT_DOORS:
                continue
            target = rest.split(".")[0] or "__init__"
            if target != room and target not in MAY_IMPORT.get(room, set()):
                found.append(f"{path.name} ({room}) imports {target}")
    return found


def imported(tree: ast.Module) -> list[str]:
    """Modules that a file imports when it runs; imports for type checkers only do not count."""
    names = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                names += [alias.name for alias in inner.names]
            elif isinstance(inner, ast.ImportFrom):
                names.append(inner.module or "")
                if inner.module == "dualrs":
                    names += [f"dualrs.{alias.name}" for alias in inner.names]
    return names


def identifiers(room: Path) -> set[str]:
    names = set()
    for path in room.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names |= {
                getattr(node, field) for field in ("id", "arg", "attr") if isinstance(getattr(node, field, 0), str)
            }
    return names


def test_imports_point_one_way():
    assert violations(SOURCE) == []


def test_every_room_has_a_rule():
    rooms = {p.relative_to(SOURCE).parts[0].removesuffix(".py") for p in SOURCE.rglob("*.py")}
    assert rooms == set(MAY_IMPORT) | FRONT_DOORS


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("theory/bounds.py", "import torch", "imports torch"),
        ("certificates/cohen.py", "from dualrs.sampling.engine import Engine", "imports sampling"),
        ("sampling/engine.py", "from dualrs.theory.budget import ErrorBudget", "imports theory"),
        ("storage/ledger.py", "def f():\n    from dualrs.data import dataset", "imports data"),
        ("data/dataset.py", "from dualrs import smoothed", "imports smoothed"),
        ("models/noisy.py", "import dualrs.data.images", "imports data"),
    ],
)
def test_the_check_can_fail(tmp_path, file, line, complaint):
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(line + "\n")
    assert [v for v in violations(tmp_path) if complaint in v]


def fixed_level_bounds(source: Path) -> list[str]:
    """Every certificate that makes a bound by itself, and not through its votes, which know the plan."""
    found = []
    for path in sorted((source / "certificates").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.ImportFrom(module="dualrs.theory.bounds" | "dualrs.theory.looks", names=names):
                    taken = {alias.name for alias in names} - {"Floats", "shares"}
                    found += [f"{path.name} imports {name}" for name in sorted(taken)]
                case ast.ImportFrom(module="dualrs.theory", names=names):
                    taken = {alias.name for alias in names} & {"bounds", "looks"}
                    found += [f"{path.name} imports {name}" for name in sorted(taken)]
                case ast.Import(names=names):
                    found += [f"{path.name} imports {a.name}" for a in names if a.name.startswith("dualrs.theory")]
                case ast.Name(id=name) | ast.alias(name=name) | ast.Attribute(attr=name) if name in INVERSES:
                    found.append(f"{path.name} uses {name}")
    return found


INVERSES = {"betaincinv", "betainccinv", "bdtri", "btdtri", "beta"}  # what a Clopper-Pearson bound is made of


def test_bounds_of_certificates_come_from_votes_which_know_their_plan():
    """A bound made from bare counts would be at a fixed level, whatever looks the counts were gathered under."""
    assert fixed_level_bounds(SOURCE) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("from dualrs.theory.bounds import Floats, lower", "imports lower"),
        ("from dualrs.theory.bounds import upper as bound", "imports upper"),
        ("from dualrs.theory.looks import lower_at_looks", "imports lower_at_looks"),
        ("from dualrs.theory import bounds", "imports bounds"),
        ("import dualrs.theory.bounds as b", "imports dualrs.theory.bounds"),
        ("def f(k):\n    from scipy.special import betaincinv\n    return betaincinv(k, 2, 0.1)", "uses betaincinv"),
        ("from scipy.stats import beta", "uses beta"),
        ("from scipy import stats\np = stats.beta.ppf(0.1, 1, 2)", "uses beta"),
    ],
)
def test_the_check_of_bounds_can_fail(tmp_path, line, complaint):
    path = tmp_path / "certificates" / "new.py"
    path.parent.mkdir()
    path.write_text(line + "\n")
    assert [f for f in fixed_level_bounds(tmp_path) if complaint in f]


def test_the_check_of_bounds_lets_types_and_levels_pass(tmp_path):
    path = tmp_path / "certificates" / "new.py"
    path.parent.mkdir()
    path.write_text("from dualrs.theory.bounds import Floats\nfrom dualrs.theory.looks import shares\n")
    assert fixed_level_bounds(tmp_path) == []


def test_sampling_knows_nothing_of_alpha_or_labels():
    assert not {"alpha", "label", "labels", "rule"} & identifiers(SOURCE / "sampling")


@pytest.mark.parametrize("room", ["theory", "certificates"])
def test_arithmetic_knows_no_labels(room):
    assert not {"label", "labels"} & identifiers(SOURCE / room)


def quickest(command: list[str]) -> float:
    """Seconds of processor time, the least of five runs: what the command needs, whatever else the machine does."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def test_importing_dualrs_is_quick_and_leaves_torch_alone():
    program = "import dualrs, sys; assert not {'torch', 'scipy', 'numpy'} & set(sys.modules)"
    assert quickest([sys.executable, "-c", program]) < 0.1


def test_results_can_be_read_without_torch():
    program = "import sys; sys.modules['torch'] = None; import dualrs.storage, dualrs.report.summary, dualrs.policy"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_help_is_quick():
    assert (
        quickest([sys.executable, "-c", "import sys; sys.argv[1:] = ['--help']; from dualrs.cli import main; main()"])
        < 0.5
    )


# A missing package is no fault of what it was to read


def swallowed(source: Path) -> list[str]:
    """Every place where an optional package is asked for while whatever goes wrong is put down to something else."""
    found = []
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Try) and any(_takes_all(handler) for handler in node.handlers):
                calls = [inner for part in node.body for inner in ast.walk(part) if isinstance(inner, ast.Call)]
                needed = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id.startswith("need")]
                kept = any("DualrsError" in ast.unparse(h.type) for h in node.handlers if h.type)
                found += [f"{path.name}, line {call.lineno}" for call in needed if not kept]
    return found


def _takes_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or "Exception" in ast.unparse(handler.type).replace("BaseException", "Exception")


def test_no_missing_package_is_taken_for_something_else():
    assert swallowed(SOURCE) == []


def test_a_swallowed_package_is_found(tmp_path):
    (tmp_path / "a.py").write_text(
        "try:\n    need('diffusers', 'diffusion', 'it').load()\nexcept Exception as error:\n    raise BadCheckpoint\n"
    )
    assert swallowed(tmp_path) == ["a.py, line 2"]
