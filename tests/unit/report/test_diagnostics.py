"""Diagnostics: what is measured is what their definitions say, computed here input by input."""

from pathlib import Path

import numpy as np
import pytest
from report_cases import NEAR, SIGMAS, a_header, made
from scipy.stats import beta, norm

from dualrs.errors import BadTable, UnusableVotes
from dualrs.report.diagnostics import NONE, Ecdf, confidence_penalty, fixed_radii, p_a, slack
from dualrs.report.methods import methods
from dualrs.storage import Ledger, derive
from dualrs.storage.results import read_sampled
from dualrs.training.labels import read_labels

ONE_SIGMA = {"rule": "cohen", "sigmas": (0.5,), "sigma_e": None}


def opened(tmp_path, header=None, **options):
    return Ledger.open(made(tmp_path / "run.ledger", header, **options))


def radius(counts, selection, label, sigma, alpha):
    """The radius of one model on one input, zero where it is wrong, from the textbook."""
    y = int(selection.argmax())
    if label is not None and y != label:
        return 0.0
    k, n = int(counts[y]), int(counts.sum())
    bound = beta.ppf(alpha, k, n - k + 1) if k else 0.0
    return max(0.0, sigma * norm.ppf(bound))


def test_ecdf_counts_up_to_and_below():
    found = Ecdf.of([0.0, -1.0, 0.0, 2.0])
    assert found.values.tolist() == [-1.0, 0.0, 2.0]
    assert found.share.tolist() == [0.25, 0.75, 1.0]
    assert (found.below(0.0), found.up_to(0.0)) == (0.25, 0.75)
    assert (found.up_to(-2.0), found.below(-1.0), found.up_to(5.0)) == (0.0, 0.0, 1.0)


def test_ecdf_of_nothing_is_refused():
    with pytest.raises(BadTable, match="no input is finished"):
        Ecdf.of([])


@pytest.mark.parametrize("labelled", [True, False])
def test_radii_of_every_sigma_are_those_of_the_definition(tmp_path, labelled):
    with opened(tmp_path, count=30, labelled=labelled) as ledger:
        fixed, sampled = fixed_radii(ledger), read_sampled(ledger)
    assert fixed.sigmas == SIGMAS
    for i in range(30):
        label = i % 4 if labelled else None
        expected = [radius(e.estimation[i], e.selection[i], label, e.sigma, 0.01) for e in sampled.votes.experts]
        assert fixed.radii[i] == pytest.approx(expected)
        assert fixed.best[i] == (np.argmax(expected) if max(expected) > 0 else NONE)
        chosen = sampled.votes.router.selection[i].argmax()
        assert fixed.regret[i] == pytest.approx(max(expected) - expected[chosen])
    assert fixed.best_counts.sum() == (fixed.best != NONE).sum()


def test_regret_is_what_the_oracle_has_over_the_chosen_sigma(tmp_path):
    with opened(tmp_path, count=40) as ledger:
        fixed, oracle = fixed_radii(ledger), methods(ledger, ["oracle"])["oracle"].results
    taken = fixed.radii[np.arange(40), fixed.chosen]
    assert fixed.regret == pytest.approx(np.where(oracle.correct, oracle.radius, 0.0) - taken)
    assert (fixed.regret >= 0).all()
    assert 0 < Ecdf.of(fixed.regret).up_to(0.0) < 1  # the case is not trivial


def test_slack_is_negative_just_where_the_router_limits(tmp_path):
    with opened(tmp_path, count=60) as ledger:
        certificates = derive(ledger, "paper")[1]
    found = slack(certificates)
    assert ((found < 0) == ((certificates.limited_by == "router") & (certificates.r_c > 0))).all()
    assert 0 < (found < 0).sum() < 60
    both = (certificates.r_sigma > 0) & (certificates.r_c > 0)
    assert found[both] == pytest.approx((certificates.r_sigma - certificates.r_c)[both])


def test_p_a_is_the_share_of_the_true_class_at_the_chosen_sigma(tmp_path):
    with opened(tmp_path, count=20) as ledger:
        sampled = read_sampled(ledger)
    chosen = sampled.votes.router.selection.argmax(axis=1)
    expected = [sampled.votes.experts[chosen[i]].estimation[i, i % 4] / 500 for i in range(20)]
    assert p_a(sampled) == pytest.approx(expected)


def test_p_a_without_labels_is_of_the_selected_class(tmp_path):
    with opened(tmp_path, a_header(**ONE_SIGMA), labelled=False) as ledger:
        sampled = read_sampled(ledger)
    y = sampled.votes.selection.argmax(axis=1)
    assert p_a(sampled) == pytest.approx(sampled.votes.estimation[np.arange(12), y] / 500)


def test_missing_votes_are_named_with_what_to_run(tmp_path):
    with (
        opened(tmp_path, a_header(rule="paper", votes="needed"), only_chosen=True) as ledger,
        pytest.raises(UnusableVotes, match=r"run\.ledger lacks votes of some sigma on 12 of 12 .* --all-votes"),
    ):
        fixed_radii(ledger)


def test_labels_give_the_radii_of_the_true_class(tmp_path):
    header = a_header(rule="labels", sigma_e=None, n0=0, n=100, votes="needed")
    with Ledger.create_or_resume(tmp_path / "run.ledger", header) as ledger:
        ledger.add_inputs([("a", 0, 1), ("b", 1, 2)])
        for name, votes in (("a", (10, 90, 0, 0)), ("b", (20, 30, 40, 10))):
            for stream in (s for s in ledger.rows.answers if s.part == "estimation"):
                for unit in header.plan.units(name, stream):
                    ledger.record(unit, np.array([votes]))
        fixed = fixed_radii(ledger)
        assert fixed.radii.tolist() == read_labels(ledger).radii.tolist()
    assert fixed.best.tolist() == [2, NONE]
    with pytest.raises(UnusableVotes, match="no router voted"):
        _ = fixed.regret


def test_one_sigma_has_no_routing_to_examine(tmp_path):
    with opened(tmp_path, a_header(**ONE_SIGMA)) as ledger:
        certificates, fixed = derive(ledger)[1], fixed_radii(ledger)
    with pytest.raises(UnusableVotes, match="there is no router"):
        slack(certificates)
    with pytest.raises(UnusableVotes, match="no router voted"):
        _ = fixed.regret


def test_a_sigma_for_each_input_leaves_none_to_compare(tmp_path):
    with opened(tmp_path, a_header(**NEAR)) as ledger, pytest.raises(UnusableVotes, match="a sigma of its own"):
        fixed_radii(ledger)


def test_a_ledger_is_left_as_it_was(tmp_path):
    path = Path(made(tmp_path / "run.ledger"))
    before = path.read_bytes()
    with Ledger.open(path) as ledger:
        fixed_radii(ledger)
    assert path.read_bytes() == before


def test_penalty_is_the_table_of_the_paper():
    printed = "2.2900 2.2877 2.2848 0.8277 0.8267 0.8256 0.2409 0.2401 0.2391"
    assert " ".join(f"{row.radius:.4f}" for row in confidence_penalty()) == printed
