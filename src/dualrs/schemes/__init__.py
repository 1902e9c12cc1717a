"""Schemes: the kinds of run, one file each. A new kind is a file here and a line below."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dualrs.certificates import Rule
from dualrs.errors import BadSetting
from dualrs.policy import POLICY, read_target
from dualrs.schemes.ace import ACE_RULE, Ace
from dualrs.schemes.aces import Aces, AcesVotes, aces_rule
from dualrs.schemes.assigned import Assigned
from dualrs.schemes.backed import Backed
from dualrs.schemes.cascade import MULTISCALE_RULE, Cascade, CascadeVotes, cascade_rule
from dualrs.schemes.dual import RULES, Dual, DualVotes, TwoStage, two_stage_rule
from dualrs.schemes.form import CASCADE, Form
from dualrs.schemes.input_dependent import BY_LEVEL, InputDependent, LevelledVotes
from dualrs.schemes.labels import Labels
from dualrs.schemes.lesson import Lesson
from dualrs.schemes.mixed import Mixed, MixedVotes
from dualrs.schemes.scheme import ALL, COHEN, NEEDED, ORACLE, Scheme, Seen, View, unknown
from dualrs.schemes.several import CONFIDENCES, Several
from dualrs.schemes.single import Single

__all__ = [
    "ALL",
    "CONFIDENCES",
    "NAMES",
    "NEEDED",
    "ORACLE",
    "POLICY",
    "SCHEMES",
    "Ace",
    "Aces",
    "AcesVotes",
    "Assigned",
    "Backed",
    "Cascade",
    "CascadeVotes",
    "Dual",
    "DualVotes",
    "Form",
    "InputDependent",
    "Labels",
    "Lesson",
    "LevelledVotes",
    "Mixed",
    "MixedVotes",
    "Scheme",
    "Seen",
    "Several",
    "Single",
    "TwoStage",
    "View",
    "read_target",
    "rule",
    "scheme_of",
]

SCHEMES: dict[str, type[Scheme[Any]]] = {
    kind.name: kind for kind in (Single, Dual, Cascade, Aces, Ace, Mixed, Backed, InputDependent, Labels, Assigned)
}
# Rules under which a run may be certified, but for those with parameters.
NAMES = (COHEN.name, *RULES, ACE_RULE.name, CASCADE, MULTISCALE_RULE.name, *BY_LEVEL)


def rule(name: str) -> Rule[Any]:
    """Look up a rule of some run: `NAMES`, ``paper-1:4`` for another split, ``cascade-0.4`` or ``aces-0.5``."""
    plain: dict[str, Rule[Any]] = {COHEN.name: COHEN, ACE_RULE.name: ACE_RULE, **BY_LEVEL}
    found = plain.get(name) or two_stage_rule(name) or cascade_rule(name) or aces_rule(name)
    if found is None:
        forms = ("paper-A:B for another split", "cascade-CONFIDENCE for votes that pass", "aces-THRESHOLD")
        raise unknown(name, [*NAMES, *forms])
    return found


def scheme_of(settings: dict[str, Any]) -> Scheme[Any]:
    """Take the settings of a scheme out of the fields of a recorded header, and make it of them."""
    name = settings.pop("scheme", None)
    if name is None:
        name = _kind_before_schemes(settings)
    if name not in SCHEMES:
        raise BadSetting(f"the run is of kind {name!r}, and this version of dualrs knows {', '.join(SCHEMES)}")
    kind = SCHEMES[name]
    taken: Mapping[str, Any] = {f.name: settings.pop(f.name) for f in fields(kind) if f.name in settings}
    return kind(**taken)


def _kind_before_schemes(settings: dict[str, Any]) -> str:
    """What kind of run a header of format 1 is about, which says it by what it has; leaves what that kind needs."""
    if settings.get("rule") in (Labels.name, Assigned.name):
        name = str(settings["rule"])
    elif settings.get("thresholds"):
        name = Aces.name
    else:
        name = Single.name if settings.get("sigma_e") is None else Dual.name
    if name not in (Dual.name, Assigned.name):
        sigma_e = settings.pop("sigma_e", None)
        if name == Aces.name and [sigma_e] != list(settings.get("sigmas", ())):
            raise BadSetting("thresholds are of ACES, where selector and classifier have one sigma")
    return name
