"""Why an input has its radius: the sentence names what limits it, and the flags are what filters say."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from report_cases import a_header, made

from dualrs.report.gallery import explain, explain_votes, shortened, thumbnail, top_classes
from dualrs.schemes import Dual, DualVotes, rule
from dualrs.storage import Ledger
from dualrs.storage.results import UNLABELLED, Sampled
from dualrs.votes import SamplingPlan, Votes

PLAN = SamplingPlan(n0=10, n=1000)
NAMES = ("cat", "dog", "owl")


def one(router, *experts, label=0, name="paper"):
    """Why of one input, from estimation counts; the selection votes are unanimous for their winner."""
    votes = [Votes(s, _selected(c), np.array([c]), PLAN) for s, c in zip((0.5, 1.0), experts, strict=True)]
    both = DualVotes(Votes(1.0, _selected(router), np.array([router]), PLAN), tuple(votes))
    scheme = Dual(both.sigmas, both.experts[0].answers, both.router.sigma)
    found = Sampled(np.array(["x"]), np.array([0]), np.array([label]), np.zeros(1), both, scheme)
    return explain_votes(found, rule(name), 0.001)[0]


def _selected(counts):
    return (np.arange(len(counts)) == np.argmax(counts)).astype(np.int64)[None] * 10 * (sum(counts) > 0)


def test_the_class_limits():
    why = one([1000, 0], [800, 150, 50], [900, 50, 50])
    assert why.reason(NAMES).startswith(
        "The class limits it: 800 of 1,000 votes under sigma 0.5 are for cat; beyond 0.3"
    )
    assert "A change of the routing does no harm up to 2.4" in why.reason(NAMES)
    assert why.flags == ("mis-routed",)
    assert why.best == 1.0


def test_the_router_limits():
    why = one([600, 400], [990, 5, 5], [600, 300, 100])
    assert why.reason().startswith(
        "The routing limits it: 600 of 1,000 votes of the router are for sigma 0.5; beyond 0.1"
    )
    assert "it might answer another sigma. Yet under sigma 0.5 the class stands up to 0.97" in why.reason()
    assert why.flags == ("limited by router",)


def test_a_rival_limits():
    why = one([600, 400], [990, 5, 5], [100, 800, 100], name="fusion")
    assert "it might answer sigma 1, where another class might win" in why.reason()
    assert why.flags == ("limited by rival",)


def test_the_class_is_undecided():
    why = one([1000, 0], [450, 350, 200], [400, 300, 300])
    assert why.reason(NAMES) == (
        "It abstains: 450 of 1,000 votes under sigma 0.5 are for cat, which is too few to show that it wins."
    )
    assert why.flags == ("abstained",)
    assert why.best is None


def test_the_router_is_undecided():
    why = one([500, 500], [990, 5, 5], [990, 5, 5])
    assert why.reason().startswith(
        "It abstains: 500 of 1,000 votes of the router are for sigma 0.5, and the true answer"
    )
    assert set(why.flags) == {"limited by router", "abstained", "mis-routed"}


def test_wrong_is_said_only_of_a_claim_that_a_label_contradicts():
    votes = [1000, 0], [990, 5, 5], [0, 1000, 0]
    assert one(*votes, label=1).flags == ("mis-routed", "wrong")
    assert one(*votes, label=UNLABELLED).flags == ("mis-routed",)


def test_an_expert_that_nobody_asked_leaves_routing_unjudged():
    why = one([1000, 0], [800, 150, 50], [0, 0, 0])
    assert why.seen.experts[1] is None
    assert why.fixed is None
    assert why.flags == ()
    assert list(why.radii()) == ["certified", "class", "routing"]


def test_radii_are_those_of_the_certificate_and_of_each_sigma():
    why = one([600, 400], [990, 5, 5], [600, 300, 100])
    radii = why.radii()
    assert radii["certified"] == min(radii["class"], radii["routing"]) == why.certificate.radius
    assert radii["label at sigma 0.5"] > radii["class"]  # alone, it has all of alpha
    assert list(radii)[3:] == ["label at sigma 0.5", "label at sigma 1"]


@pytest.mark.parametrize(
    "header", [a_header(), a_header(rule="cohen", sigmas=(0.5,), sigma_e=None)], ids=["two", "one"]
)
def test_every_input_of_a_ledger_is_explained_as_it_was_certified(tmp_path, header):
    with Ledger.open(made(tmp_path / "run.ledger", header, count=30)) as ledger:
        found, recorded = explain(ledger), ledger.certificates()
    assert {why.id: why.certificate for why in found} == {i: c.certificate for i, c in recorded.items()}
    assert all(why.reason().endswith(".") for why in found)


def test_another_rule_is_explained_from_the_same_votes(tmp_path):
    with Ledger.open(made(tmp_path / "run.ledger")) as ledger:
        found = explain(ledger, "paper", 0.1)
        expected = rule("paper").certify(ledger.votes([why.id for why in found]), 0.1)
    assert [why.certificate for why in found] == list(expected)


def test_top_classes_come_first_and_the_rest_is_summed():
    counts = np.array([1, 50, 2, 30, 3, 4, 0, 10])
    assert top_classes(counts, None, shown=3) == [("class 1", 50), ("class 3", 30), ("class 7", 10), ("others", 10)]
    assert top_classes(np.array([0, 7, 3]), NAMES) == [("dog", 7), ("owl", 3)]


def test_names_are_cut_to_a_width():
    assert shortened("German short-haired pointer", 27) == "German short-haired pointer"
    assert shortened("German short-haired pointer", 20) == "German short-haired…"
    assert shortened("owl", 3) == "owl"


@pytest.mark.parametrize(("shape", "size"), [((3, 32, 32), (32, 32)), ((1, 8, 8), (8, 8)), ((3, 100, 200), (64, 32))])
def test_thumbnails_are_small_pngs(shape, size):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    picture = Image.open(BytesIO(thumbnail(image)))
    assert (picture.format, picture.size) == ("PNG", size)
    if size == shape[:0:-1]:
        assert (np.asarray(picture).reshape(*shape[1:], -1) == image.transpose(1, 2, 0)).all()
