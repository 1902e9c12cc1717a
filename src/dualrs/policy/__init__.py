"""Which votes an input needs next: small state machines over streams, one per kind of job.

A policy is a generator: it yields the streams it wants next, each with the number of votes it wants of it in all, and
is resumed when they are in the tally that it was given. Policies may look at votes; the engine, which only counts, may
not.
"""

from dualrs.policy.adaptive import POLICY, adaptive_policy
from dualrs.policy.fixed import (
    Policy,
    Wanted,
    assign_policy,
    certify_policy,
    complete_policy,
    label_policy,
    predict_policy,
)
from dualrs.policy.target import Grid, Target, Tolerance, read_target

__all__ = [
    "POLICY",
    "Grid",
    "Policy",
    "Target",
    "Tolerance",
    "Wanted",
    "adaptive_policy",
    "assign_policy",
    "certify_policy",
    "complete_policy",
    "label_policy",
    "predict_policy",
    "read_target",
]
