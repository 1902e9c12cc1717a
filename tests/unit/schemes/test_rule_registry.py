"""The rules by name: what is found, what is refused, and what is refused before a single vote is drawn."""

import numpy as np
import pytest

from dualrs.certificates import Certificates
from dualrs.certificates.two_stage import paper
from dualrs.errors import BadSetting, TooFewVotes
from dualrs.schemes import NAMES, CascadeVotes, DualVotes, LevelledVotes, rule
from dualrs.schemes.ace import AceVotes
from dualrs.votes import SamplingPlan, Stated, Votes


def unanimous(n, candidates, classes=3):
    """One input on which every vote of every model is for its first answer."""
    plan = SamplingPlan(n0=1, n=n)

    def votes(sigma, answers):
        first = np.eye(1, answers, dtype=np.int64)
        return Votes(sigma, first, n * first, plan)

    return DualVotes(votes(1.0, candidates), tuple(votes(0.25 * (i + 1), classes) for i in range(candidates)))


KINDS = {  # all others read two stages
    "cohen": Votes,
    "ace": AceVotes, "cascade": CascadeVotes, "multiscale": CascadeVotes, "sukenik": LevelledVotes,
    "as-if-constant": LevelledVotes,
}  # fmt: skip


def of_kind(found, votes):
    first = votes.experts[0]
    views = {
        Votes: lambda: first,
        AceVotes: lambda: AceVotes(Stated(np.eye(1, 3, dtype=np.int64), np.array([0.5]), first.plan), votes.experts),
        CascadeVotes: lambda: CascadeVotes(votes.experts),
        LevelledVotes: lambda: LevelledVotes(np.eye(1, 2, dtype=np.int64), first, (0.25, 0.26), 0.5, 27),
    }
    return views.get(found.reads, lambda: votes)()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_leads_to_the_rule_of_that_name(name):
    found = rule(name)
    assert found.name == name
    assert found.reads is KINDS.get(name, DualVotes)
    assert not found.certify(of_kind(found, unanimous(100, 3)), 0.001)[0].abstained


def test_only_fusion_asks_for_experts_that_the_router_did_not_select():
    asking = {name for name in NAMES if rule(name).reads is DualVotes and rule(name).helpful is not None}
    assert asking == {"fusion", "fusion-pair"}


@pytest.mark.parametrize("name", ["paper-1:4", "paper-2.5:0.5", "paper-1:1"])
def test_split_in_the_name_is_class_to_router(name):
    found = rule(name)
    assert found.name == name
    votes = unanimous(100, 3)
    split = tuple(float(s) for s in name.removeprefix("paper-").split(":"))
    assert found.certify(votes, 0.001)[0] == Certificates.conclude(paper(votes, 0.001, split))[0]
    if name == "paper-1:1":
        assert found.certify(votes, 0.001)[0] == rule("paper").certify(votes, 0.001)[0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("smoothing", id="a name that does not exist"),
        pytest.param("", id="no name"),
        pytest.param("Paper", id="a capital"),
        pytest.param("paper-", id="a split left open"),
        pytest.param("paper-1", id="half of a split"),
        pytest.param("paper-1:2:3", id="a split in three"),
        pytest.param("paper--1:2", id="a negative share"),
        pytest.param("paper-1:inf", id="an infinite share"),
        pytest.param("cohen-1:4", id="a split of a rule that has none"),
    ],
)
def test_unknown_name_is_refused_and_the_known_ones_are_listed(name):
    with pytest.raises(BadSetting, match=r"unknown rule .* cohen, paper, nosplit, fusion, fusion-pair"):
        rule(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("paper-0:1", "positive share", id="nothing for the class"),
        pytest.param("paper-1:0", "positive share", id="nothing for the router"),
        pytest.param("paper-0:0", "two numbers such as", id="nothing for either"),
        pytest.param("paper-1.2.3:4", "two numbers such as", id="a share that is no number"),
        pytest.param("paper-.:4", "two numbers such as", id="a share without a digit"),
    ],
)
def test_useless_split_is_refused(name, message):
    with pytest.raises(BadSetting, match=message):
        rule(name)


@pytest.mark.parametrize("split", [(0, 1), (1, 0)])
def test_useless_split_is_refused_by_the_rule_itself(split):
    with pytest.raises(BadSetting, match="positive share"):
        paper(unanimous(100, 2), 0.001, split)


def test_refusal_names_the_number_of_votes_that_would_do():
    with pytest.raises(TooFewVotes, match="take n >= 10"):
        rule("cohen").check(SamplingPlan(n0=1, n=9), 0.001)
    rule("cohen").check(SamplingPlan(n0=1, n=10), 0.001)
    with pytest.raises(TooFewVotes, match="take n >= 11"):
        rule("paper").check(SamplingPlan(n0=1, n=10), 0.001)
    rule("paper").check(SamplingPlan(n0=1, n=11), 0.001)
