"""How far to sample: to the planned end, or from look to look towards a target. Schemes say of which streams."""

from dualrs.policy.adaptive import POLICY, going_on, next_look, next_stage
from dualrs.policy.hopes import Hopes
from dualrs.policy.target import Grid, Target, Tolerance, read_target
from dualrs.policy.whole import both_parts, whole

__all__ = [
    "POLICY",
    "Grid",
    "Hopes",
    "Target",
    "Tolerance",
    "both_parts",
    "going_on",
    "next_look",
    "next_stage",
    "read_target",
    "whole",
]
