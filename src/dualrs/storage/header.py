"""Header: what a run is, so that a resumed run, a shard or a reader can tell whether it is the same one.

Enters: the settings of a run, or the JSON of a recorded one. Leaves: a frozen record with a fingerprint over
the fields that decide votes or certificates, and sentences about what differs between two of them.
"""

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from dualrs.certificates import Rule, spell_seed
from dualrs.errors import BadSetting, LedgerError
from dualrs.schemes import ALL, NEEDED, POLICY, Assigned, Lesson, Scheme, read_target, scheme_of
from dualrs.schemes.scheme import integer, real
from dualrs.storage.tuned import Overlap, Tuned
from dualrs.votes import Policy, SamplingPlan

FORMAT = 2  # of the ledger: its tables, its seals and the fields of this header
FORMATS = (1, 2)  # that can be read; format 1 lists no inputs, names no scheme, and its noise is addressed by names
# Fields that came later, and what they are where a ledger lacks them.
LATER: Mapping[str, object] = {
    "votes": NEEDED, "looks": (), "target": "", "policy": "", "identity": {}, "tuned": {}, "class_names": (),
    "earlier": {}, "randomness": "",
}  # fmt: skip
LATER_OF_SCHEMES: Mapping[str, object] = {"confidences": ()}
MOST_CLASSES = 1 << 20  # counts of votes have a column for each
# May differ between two halves of one run.
INFORMATIONAL = ("versions", "command", "created", "tuned", "class_names", "earlier")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The settings of a run. All fields but `INFORMATIONAL` decide votes or certificates.

    ``rule`` is that of the certificates; where a run ends in votes to train with, the name of its scheme.
    """

    scheme: Scheme[Any]
    rule: str
    alpha: float
    seed: int
    n0: int
    n: int
    image_shape: tuple[int, int, int]
    batch_size: int
    dtype: str
    device: str
    models: Mapping[str, str]  # "router", "class", "class 0.5" -> fingerprint
    identity: Mapping[str, str] = field(default_factory=dict)  # likewise -> hash of its answers to trial copies
    dataset: str
    dataset_fingerprint: str
    noise: str  # name and version of the noise stream
    randomness: str = ""  # likewise of the auxiliary stream, where a network draws numbers of its own
    votes: str = NEEDED  # or ALL
    looks: tuple[int, ...] = ()  # of an adaptive run: the numbers of votes at which it may stop
    target: str = ""  # of an adaptive run: what its radii are wanted for
    policy: str = ""  # of an adaptive run: version of what decides on its votes, and of the levels of its looks
    format: int = FORMAT
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    created: str = ""
    tuned: Mapping[str, str] = field(default_factory=dict)  # the fields of `Tuned`, if its recipe had them
    class_names: tuple[str, ...] = ()  # by number, if network or data tell
    earlier: Mapping[str, str] = field(default_factory=dict)  # n at which its first votes were certified -> alpha

    def __post_init__(self) -> None:
        # One spelling per value (1 and 1.0, list and tuple, numpy scalars): the fingerprint must not depend on it.
        for name in ("format", "seed", "n0", "n", "batch_size"):
            self._set(name, integer(name, getattr(self, name)))
        self._set("alpha", real("alpha", self.alpha))
        self._set("image_shape", tuple(integer("image_shape", k) for k in self.image_shape))
        for name in ("models", "identity", "versions", "tuned", "earlier"):
            self._set(name, {_text(name, k): _text(name, v) for k, v in dict(getattr(self, name)).items()})
        for f in fields(self):
            if f.type in (str, "str"):
                self._set(f.name, _text(f.name, getattr(self, f.name)))
        self._set("class_names", tuple(_text("class_names", name) for name in self.class_names))
        if self.class_names and len(self.class_names) != self.scheme.classes:
            raise BadSetting(f"{len(self.class_names)} names for {self.scheme.classes} classes")
        if self.tuned:
            if odd := sorted(set(self.tuned) ^ {f.name for f in fields(Tuned)}):
                raise BadSetting(f"the record of a tuned rule has missing or unknown fields: {', '.join(odd)}")
            Tuned(**self.tuned)  # refuses what is none
        if not all(n.isdecimal() and len(n) < 19 and 0 < float(alpha) < 1 for n, alpha in self.earlier.items()):
            raise BadSetting(f"earlier looks are numbers of votes, with an alpha each; got {self.earlier}")
        if self.format not in FORMATS:
            raise BadSetting(f"the format must be one of {FORMATS}, got {self.format}")
        if isinstance(self.scheme, Assigned):
            if self.scheme.classes:
                raise BadSetting(
                    f"where sigmas are assigned, a router votes and no classifier; got {self.scheme.classes} classes"
                )
        elif not 1 <= self.scheme.classes <= max(self.scheme.streams.values()) <= MOST_CLASSES:
            raise BadSetting(
                f"a run needs classes, with their confidences at most {MOST_CLASSES:,}, got {self.scheme.classes}"
            )
        if not self.scheme.certifies and self.rule != self.scheme.name:
            raise BadSetting(f"a run of kind {self.scheme.name} has no rule, got {self.rule!r}")
        if self.votes not in (NEEDED, ALL):
            raise BadSetting(f"votes must be {NEEDED!r} or {ALL!r}, got {self.votes!r}")
        self._set("looks", tuple(integer("looks", k) for k in self.looks))
        if len({bool(self.target), bool(self.looks), bool(self.policy)}) > 1:
            raise BadSetting("an adaptive run has looks, a target and a policy, another one none of them")
        if self.policy and self.policy != POLICY:
            raise BadSetting(
                f"the run is adaptive under {self.policy!r}, and this version of dualrs knows {POLICY!r} alone: the "
                "levels of other looks cannot be told; use the version that wrote it"
            )
        if self.looks and (self.votes == ALL or not self.certifies):
            raise BadSetting("only a run that certifies can be adaptive, and it does not ask for all votes")
        if self.looks and self.own_rule.outlook is None:
            raise BadSetting(f"rule {self.rule} has no adaptive form: n is fixed")
        if len(self.image_shape) != 3:
            raise BadSetting(f"images have three dimensions, got {self.image_shape}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @cached_property
    def plan(self) -> SamplingPlan:
        """Votes per stream."""
        return SamplingPlan(self.n0, self.n, self.looks)

    @cached_property
    def own_rule(self) -> Rule[Any]:
        """The rule of the certificates."""
        return self.scheme.own_rule(self.rule)

    @cached_property
    def wants(self) -> Policy:
        """Which votes an input of the run gets."""
        if isinstance(self.scheme, Lesson):
            return self.scheme.wanted(self.plan)
        target = read_target(self.target) if self.target else None
        return self.scheme.policy(self.plan, self.own_rule, self.alpha, votes=self.votes, target=target)

    @property
    def certifies(self) -> bool:
        """Whether the run ends in certificates, and not in votes to train with."""
        return self.scheme.certifies

    @property
    def contents(self) -> str:
        """What a ledger of this run holds, in words."""
        return self.scheme.contents(self.rule)

    @property
    def amount(self) -> str:
        """How many votes a stage gets, in words."""
        adaptive = "adaptive, at most " if self.looks else ""
        return f"{adaptive}n {self.n:,} · n0 {self.n0:,}"

    @property
    def second_look(self) -> str:
        """What to know where the first votes of the run were certified before; empty if they were not."""
        if not self.earlier:
            return ""
        before = " and ".join(f"n {int(n):,} at alpha {float(alpha):g}" for n, alpha in self.earlier.items())
        together = math.fsum([self.alpha, *map(float, self.earlier.values())])
        return (
            f"the first of these votes were certified before, {before}. Each run holds at its own alpha; whoever takes "
            f"the better one for an input looks {len(self.earlier) + 1} times, at {together:g} together"
        )

    def overlap(self, rule: str, ids: Collection[str]) -> Overlap | None:
        """That a rule was tuned on some of these inputs of the run; None if it was not, as far as the run knows."""
        if self.tuned.get("rule") != rule:
            return None
        tuned = Tuned(**self.tuned)
        shared = tuned.shared(self.dataset, self.dataset_fingerprint, ids)
        return Overlap(shared, len(ids), tuned.seed == spell_seed(self.seed)) if shared else None

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of the deciding fields: equal for two runs whose votes may be put together."""
        deciding = {name: value for name, value in self._written().items() if name not in INFORMATIONAL}
        return hashlib.blake2b(_canonical(deciding).encode(), digest_size=16).hexdigest()

    def differences(self, given: "Header", *, apart_from: Collection[str] = ()) -> list[str]:
        """A sentence for each deciding field in which ``given`` departs from this header, with both values."""
        sentences = []
        recorded, asked = self._flat(), given._flat()
        ours: Any
        theirs: Any
        for name in dict.fromkeys([*recorded, *asked]):
            if name in apart_from or name in INFORMATIONAL:
                continue
            ours, theirs = recorded.get(name), asked.get(name)
            if name == "models":
                for model in sorted({*ours, *theirs}):
                    if ours.get(model) != theirs.get(model):
                        sentences.append(_departure(f"model {model!r}", ours.get(model), theirs.get(model)))
            elif name == "identity":
                for model in sorted(set(ours) & set(theirs)):
                    if ours[model] != theirs[model]:
                        sentences.append(
                            f"the network {model!r} answers otherwise than it did: its code, a constant in it, a "
                            "library or the hardware has changed"
                        )
            elif ours != theirs:
                sentences.append(_departure(name, ours, theirs))
        return sentences

    def to_json(self) -> str:
        """The fields, in the one spelling that is sealed."""
        return _canonical(self._written())

    def _flat(self) -> dict[str, Any]:
        """All fields, those of the scheme among them."""
        held = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "scheme"}
        return {"scheme": self.scheme.name} | self.scheme.settings | held

    def _written(self) -> dict[str, object]:
        """The fields as they are recorded: `LATER` ones only where they say something, as older ledgers lack them."""
        written = self._flat()
        if self.format == 1:  # which named no scheme, and had the settings of two stages in any run
            del written["scheme"]
            written = {"sigma_e": written["sigmas"][0] if written.get("thresholds") else None} | written
        later = {**LATER, **LATER_OF_SCHEMES}
        return {name: value for name, value in written.items() if name not in later or value != later[name]}

    @classmethod
    def from_json(cls, text: str) -> "Header":
        """Read a recorded header; refuses missing, unknown and ill-typed fields."""
        try:
            recorded = json.loads(text)
            if not isinstance(recorded, dict):
                raise LedgerError(f"the header must be a JSON object, got {type(recorded).__name__}")
            scheme = scheme_of(recorded)
            known = {f.name for f in fields(cls)} - {"scheme"}
            if odd := sorted(known ^ {*recorded, *LATER}):
                raise LedgerError(f"the header has missing or unknown fields: {', '.join(odd)}")
            return cls(scheme=scheme, **recorded)
        except (TypeError, ValueError, RecursionError) as bad:
            raise LedgerError(f"the header cannot be read: {bad}") from bad


def _departure(name: str, ours: object, theirs: object) -> str:
    return f"{name} is {_shown(name, ours)} on record but {_shown(name, theirs)} was given"


def _shown(name: str, value: object) -> str:
    if name == "seed" and isinstance(value, int):
        return spell_seed(value)
    return "nothing" if value in (None, "") else str(value)


def _canonical(content: Mapping[str, object]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadSetting(f"{name} must be text, got {value!r}")
    return str(value)
