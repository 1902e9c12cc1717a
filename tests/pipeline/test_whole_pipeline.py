"""The whole pipeline on a problem with known answers, from the command line: rounds, then a certified bundle."""

from pathlib import Path

import numpy as np
import toy
from small_run import RECIPE, dualrs

from dualrs.storage import Ledger, derive
from dualrs.training.assigned import read_assigned
from dualrs.training.labels import read_labels

PRODUCTS = (
    "1-labels.ledger",
    "1-router.safetensors",
    "2-assigned.ledger",
    "2-classifier.safetensors",
    "3-labels.ledger",
    "3-router.safetensors",
)


def labels(path: Path):
    with Ledger.open(path) as ledger:
        return read_labels(ledger)


def test_every_step_leaves_its_product(run):
    assert {p.name for p in run.iterdir() if p.suffix in (".ledger", ".safetensors")} == set(PRODUCTS)
    assert not list(run.glob("*.checkpoint"))


def test_labels_find_the_sigma_that_is_known_to_be_best(run):
    images, _ = toy.train()
    found = labels(run / "1-labels.ledger")
    assert found.kept.mean() > 0.8
    assert (found.best == toy.best(images)[found.index[found.kept]]).mean() > 0.99


def test_the_router_learns_the_known_assignment(run):
    images, _ = toy.train()
    with Ledger.open(run / "2-assigned.ledger") as ledger:
        assigned = read_assigned(ledger)
    wanted = np.array(toy.SIGMAS)[toy.best(images)[assigned.index]]
    assert (assigned.sigma_c == wanted).all()
    assert assigned.decided.mean() > 0.99


def test_fine_tuning_raises_the_radii_under_the_assigned_noise(run):
    images, _ = toy.train()
    best = toy.best(images)
    before, after = (labels(run / f"{number}-labels.ledger") for number in (1, 3))
    for number in (0, 1):
        rows = best[before.index] == number
        assert after.radii[rows, number].mean() > 1.2 * before.radii[rows, number].mean()
        assert (after.radii[rows, number] > 0).mean() > (before.radii[rows, number] > 0).mean() - 0.01


def test_the_bundle_certifies_better_than_either_sigma_alone(run):
    assert dualrs("certify", "--model", run / "bundle", "-o", run.parent / "dual.ledger") == 0
    with Ledger.open(run.parent / "dual.ledger") as ledger:
        _, certificates = derive(ledger)
    images, truth = toy.test()
    assert (np.array([c.sigma_c for c in certificates]) == np.array(toy.SIGMAS)[toy.best(images)]).all()
    assert np.mean([c.prediction == y for c, y in zip(certificates, truth, strict=True)]) > 0.9
    radii = np.array([c.radius for c in certificates])
    wide = toy.best(images) == 1
    assert radii[wide].mean() > 0.25 * 3.1  # more than sigma 0.25 can show with 1,000 votes
    assert (radii[~wide] > 0).mean() > 0.9  # what sigma 1 does for half of them at most


def test_nothing_is_done_twice(run):
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*") if p.suffix == ".safetensors" and p.parent == run}
    votes = {p: labels(p).radii for p in run.glob("*-labels.ledger")}
    assert dualrs("rounds", run.parent / "toy.toml", "-o", run) == 0
    assert before == {p: p.stat().st_mtime_ns for p in before}
    assert all(np.array_equal(labels(p).radii, radii) for p, radii in votes.items())


def test_products_of_another_recipe_are_refused(run, capsys):
    recipe = run.parent / "other.toml"
    recipe.write_text(RECIPE.replace("consistency_weight = 2.0", "consistency_weight = 3.0"))
    assert dualrs("rounds", recipe, "-o", run) == 2
    error = capsys.readouterr().err
    assert "1-router.safetensors" in error
    assert "Traceback" not in error
