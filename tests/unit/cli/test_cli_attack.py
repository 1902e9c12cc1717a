"""The command attack, as a user calls it."""

import json
import re

import pytest
from typer.testing import CliRunner

from dualrs.cli import app
from dualrs.cli.attack import print_attacks
from dualrs.report.nearest import Nearest
from dualrs.storage.attacks import Attacks, read_attacks

run = CliRunner().invoke

NET = """
import numpy as np
import torch

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3)).eval()
images = np.random.default_rng(0).integers(0, 256, (4, 1, 6, 6), dtype=np.uint8)
data = images, np.array([0, 1, 2, 0])
"""


def content(page):
    """What the script of a page reads."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)[1])


def dropped(attack):
    """Take the last row out of a file, as if it had not been attacked yet."""
    row = read_attacks(attack)[-1]
    attack.write_bytes(b"".join(attack.read_bytes().splitlines(keepends=True)[:-1]))
    return row


@pytest.fixture
def certified(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    given = ["--classifier", "net.py:network", "--data", "net.py:data"]
    made = run(
        app, ["certify", *given, "--sigmas", "0.1,0.2", "--n", "200", "--all-votes", "--seed", "0", "-o", "run.ledger"]
    )
    assert made.exit_code == 0, made.output
    return [*given, "--steps", "3", "--restarts", "1", "--copies", "4"]


def test_says_what_held_and_what_it_cost(certified, tmp_path):
    found = run(app, ["attack", "run.ledger", *certified])
    assert found.exit_code == 0, found.output
    assert "cascade: 0 of" in found.output
    assert "not broken by attack" in found.output
    assert "images forward" in found.output
    assert len(read_attacks(tmp_path / "run.cascade.attack")) > 0
    again = run(app, ["attack", "run.ledger", *certified])
    assert again.output == found.output


def test_another_method_has_a_file_of_its_own(certified, tmp_path):
    found = run(app, ["attack", "run.ledger", *certified, "--method", "sigma-0.1", "--no-bracket", "--inputs", "0:2"])
    assert found.exit_code == 0, found.output
    assert "sigma-0.1: 0 of" in found.output
    assert (tmp_path / "run.sigma-0.1.attack").exists()


def test_broken_certificates_end_with_code_1(certified, monkeypatch):
    from dualrs.attacks import attacker

    monkeypatch.setattr(attacker, "INSIDE", 1e9)  # sabotage: radii that reach everywhere
    monkeypatch.setattr(attacker, "is_inside", lambda *given: True)
    found = run(app, ["attack", "run.ledger", *certified, "--method", "sigma-0.1", "--no-bracket"])
    assert found.exit_code == 1, found.output
    assert "not chance" in found.output


def test_inputs_without_a_certificate_leave_nothing_to_attack(tmp_path, capsys):
    print_attacks(Attacks((), 0.001), "cascade", tmp_path / "run.attack")
    said = capsys.readouterr().out
    assert said == "cascade: none of these inputs has a certificate, so there is nothing to attack\n"


def test_a_ledger_of_labels_has_nothing_to_attack(certified):
    made = run(app, ["label", *certified[:4], "--sigmas", "0.1,0.2", "--n", "10", "-o", "labels.ledger"])
    assert made.exit_code == 0, made.output
    found = run(app, ["attack", "labels.ledger", *certified])
    assert found.exit_code != 0
    assert "nothing to attack" in str(found.exception)


class TestBeside:
    """What an attack left standing, beside what is certified."""

    @pytest.fixture
    def attacked(self, certified):
        found = run(app, ["attack", "run.ledger", *certified])
        assert found.exit_code == 0, found.output
        return certified

    def test_in_compare(self, attacked):
        found = run(
            app, ["compare", "run.ledger", "run.cascade.attack", "--methods", "cascade", "--format", "markdown"]
        )
        assert found.exit_code == 0, found.output
        rows = {line.split("|")[1].strip(): line.split("|") for line in found.output.splitlines() if "|" in line}
        lower, upper = ([float(cell) for cell in rows[name][2:4]] for name in ("cascade", "cascade attacked"))
        assert lower[0] == upper[0]  # both are the accuracy of the certified answers
        assert all(a <= b for a, b in zip(lower, upper, strict=True))

    def test_in_the_figure(self, attacked, tmp_path):
        found = run(app, ["figure", "accuracy", "run.ledger", "run.cascade.attack", "-o", "a.svg"])
        assert found.exit_code == 0, found.output
        assert "not broken by attack" in (tmp_path / "a.svg").read_text()

    def test_attack_on_another_run_is_refused(self, attacked):
        made = run(app, ["certify", *attacked[:4], "--sigma", "0.1", "--n", "200", "-o", "other.ledger"])
        assert made.exit_code == 0, made.output
        found = run(app, ["compare", "other.ledger", "run.cascade.attack"])
        assert "another run" in str(found.exception)

    def test_attack_on_some_inputs_is_refused(self, certified):
        run(app, ["attack", "run.ledger", *certified, "--inputs", "0:1"])
        found = run(app, ["compare", "run.ledger", "run.cascade.attack"])
        assert "not attacked yet" in str(found.exception)

    def test_a_bracket_of_some_inputs_is_refused_and_can_be_completed(self, certified):
        """All are tried, some of them bracketed in the same file; what is left is bracketed later."""
        for part in (["--no-bracket"], ["--inputs", "::2"]):
            made = run(app, ["attack", "run.ledger", *certified, *part])
            assert made.exit_code == 0, made.output
        found = run(app, ["compare", "run.ledger", "run.cascade.attack"])
        assert "did not search beyond the radii of" in str(found.exception)
        assert run(app, ["attack", "run.ledger", *certified]).exit_code == 0
        found = run(app, ["compare", "run.ledger", "run.cascade.attack", "--methods", "cascade"])
        assert "cascade attacked" in found.output

    def test_a_bracket_of_some_inputs_shows_with_those_alone(self, certified, tmp_path):
        for part in (["--no-bracket"], ["--inputs", "::2"]):
            run(app, ["attack", "run.ledger", *certified, *part])
        files = ["run.ledger", "run.cascade.attack", "--methods", "cascade", "--inputs"]
        shown = run(app, ["compare", *files, "::2"])
        assert shown.exit_code == 0, shown.output
        assert "2 inputs" in shown.output
        assert "cascade attacked" in shown.output
        assert run(app, ["figure", "accuracy", *files, "::2", "-o", "part.svg"]).exit_code == 0
        assert "not broken by attack" in (tmp_path / "part.svg").read_text()
        assert "did not search beyond the radii of" in str(run(app, ["compare", *files, "1::2"]).exception)
        for odd in ("3", "-2:", "::0", "a:b", "1:2:3:4"):
            assert "START:STOP:STEP" in str(run(app, ["compare", *files, odd]).exception)

    def test_on_the_page(self, attacked, tmp_path):
        found = run(app, ["report", "run.ledger", "run.cascade.attack", "--data", "net.py:data", "-o", "page.html"])
        assert found.exit_code == 0, found.output
        (shown,) = content(tmp_path / "page.html")["runs"]
        (standing,) = (method for method in shown["methods"] if method["fixed"])
        assert standing["title"].endswith("not broken by attack")
        rows = {row.id: row for row in read_attacks(tmp_path / "run.cascade.attack")}
        for entry in shown["gallery"]:
            for attack in entry["attacks"]:
                row = rows.pop(shown["ids"][entry["number"]])
                assert attack["radius"] == row.radius
                assert standing["fixed"][entry["number"]][1] >= row.radius
                assert attack["upper"] is None or float(attack["upper"]) >= row.upper
                assert (attack["image"] is None) == (attack["difference"] is None) == (row.change is None)
        assert not rows  # each is on the page

    def test_an_attack_on_some_inputs_has_their_images_and_no_curve(self, attacked, tmp_path):
        row = dropped(tmp_path / "run.cascade.attack")
        found = run(app, ["report", "run.ledger", "run.cascade.attack", "-o", "page.html"])
        assert found.exit_code == 0, found.output
        (shown,) = content(tmp_path / "page.html")["runs"]
        left = {row.id for row in read_attacks(tmp_path / "run.cascade.attack")}
        assert {shown["ids"][entry["number"]] for entry in shown["gallery"] if entry["attacks"]} == left
        assert row.id not in left
        assert "not attacked yet" in shown["notes"][0]
        assert not any(method["fixed"] for method in shown["methods"])

    def test_a_page_refuses_an_attack_on_another_run(self, attacked):
        assert run(app, ["certify", *attacked[:4], "--sigma", "0.1", "--n", "200", "-o", "b.ledger"]).exit_code == 0
        found = run(app, ["report", "b.ledger", "run.cascade.attack"])
        assert "another run" in str(found.exception)
        found = run(app, ["why", "b.ledger", "0", "--attack", "run.cascade.attack"])
        assert "another run" in str(found.exception)

    def test_in_why(self, attacked, tmp_path):
        (row, *_) = read_attacks(tmp_path / "run.cascade.attack")
        given = ["why", "run.ledger", row.id, "--attack", "run.cascade.attack"]
        found = run(app, given)
        assert found.exit_code == 0, found.output
        said = " ".join(found.output.split())
        assert f"cascade certifies class {row.prediction} up to" in said
        assert f"broken at {Nearest('cascade', row).upper}" in said
        assert f"it aimed at {row.aim}" in said
        drawn = run(app, [*given, "--data", "net.py:data", "-o", "why.svg"])
        assert drawn.exit_code == 0, drawn.output
        assert f"answered with class {row.answer}" in (tmp_path / "why.svg").read_text()

    def test_why_of_an_input_that_was_not_attacked_says_so(self, attacked, tmp_path):
        row = dropped(tmp_path / "run.cascade.attack")
        found = run(app, ["why", "run.ledger", row.id, "--attack", "run.cascade.attack"])
        assert found.exit_code == 0, found.output
        assert "run.cascade.attack has no attack on" in " ".join(found.output.split())

    def test_parts_are_joined(self, attacked):
        """Two files with a half each tell what one file does."""
        for part in ("0:2", "2:4"):
            made = run(app, ["attack", "run.ledger", *attacked, "--inputs", part, "-o", f"{part[0]}.attack"])
            assert made.exit_code == 0, made.output
        found = run(app, ["compare", "run.ledger", "0.attack", "2.attack", "--methods", "cascade"])
        assert found.exit_code == 0, found.output
        assert "cascade attacked" in found.output

    def test_an_input_in_two_files_is_refused(self, attacked, tmp_path):
        (tmp_path / "copy.attack").write_bytes((tmp_path / "run.cascade.attack").read_bytes())
        found = run(app, ["compare", "run.ledger", "run.cascade.attack", "copy.attack"])
        assert "attacked in another file too" in str(found.exception)

    def test_files_of_different_campaigns_are_not_joined(self, attacked):
        run(app, ["attack", "run.ledger", *attacked, "--steps", "2", "--inputs", "0:2", "-o", "0.attack"])
        found = run(app, ["compare", "run.ledger", "0.attack", "run.cascade.attack"])
        assert "no parts of one campaign" in str(found.exception)
