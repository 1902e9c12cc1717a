"""Votes: the only currency between the half of dualrs that runs networks and the half that does arithmetic."""

from dualrs.votes.address import BLOCK, PLAIN, UNIT, Part, Purpose, SamplingPlan, Stage, Stream, Unit, plain
from dualrs.votes.counts import Bounds, Votes, gather
from dualrs.votes.joint import Joint, check_confidences
from dualrs.votes.stated import BINS, STEP, Stated, gather_stated
from dualrs.votes.tally import Counts, Policy, Tally, Wanted

__all__ = [
    "BINS",
    "BLOCK",
    "PLAIN",
    "STEP",
    "UNIT",
    "Bounds",
    "Counts",
    "Joint",
    "Part",
    "Policy",
    "Purpose",
    "SamplingPlan",
    "Stage",
    "Stated",
    "Stream",
    "Tally",
    "Unit",
    "Votes",
    "Wanted",
    "check_confidences",
    "gather",
    "gather_stated",
    "plain",
]
