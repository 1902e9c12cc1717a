"""The sections of recipes: what each may say, with its defaults. An unknown key is an error."""

from typing import Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)


def _kinds(annotation: Any) -> set[Any]:
    """The plain types that an annotation is made of, but for None."""
    inside = [a for a in get_args(annotation) if a is not Ellipsis]
    return set().union(*map(_kinds, inside)) if inside else {annotation} - {type(None)}


class Section(BaseModel):
    """A table of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _of_its_kind(cls, value: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Refuse a text, and true or false, where a number belongs, though they could be read as one."""
        found = read(value)
        kinds = _kinds(cls.model_fields[str(info.field_name)].annotation)
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, str | bool) and type(one) not in kinds and kinds <= {int, float, bool}:
                raise ValueError(f"takes {'true or false' if bool in kinds else 'a number'}, got {one!r}")
        return found


class ModelSection(Section):
    """The networks, as references (NETWORK, or DENOISER | NETWORK).

    A router with a classifier or experts; a classifier or experts at several sigmas without a router (a cascade); or a
    classifier at one sigma, and beside it a core network, with thresholds of the entropy of the classifier, or of a
    selector, that decide between them (ACES). With several sigmas a core network states a radius of its own: it is the
    router's first candidate, or the last stage of a cascade. A router at sigma_e 0 states one too (ACE). Beside one
    sigma, ``neighbours`` are images, named as data are, by the distance to whose ``k`` nearest sigma changes, at a
    ``rate`` and about a ``centre`` (Sukenik et al.); or sigma is found by an ``ascent``, in ``steps`` at a ``rate``
    with so many ``draws`` each (Alfarra et al.). With several
    sigmas, votes tell how sure the classifier was at ``confidences``; left out, a cascade has some, and a model with a
    router none.
    """

    router: str | None = None
    classifier: str | None = None
    experts: dict[float, str] | None = None
    sigmas: tuple[float, ...] | None = None
    sigma_e: float | None = None
    sigma: float | None = None
    core: str | None = None
    thresholds: tuple[float, ...] | None = None
    selector: str | None = None
    confidences: tuple[float, ...] | None = None
    neighbours: str | None = None
    k: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    centre: float | None = None
    ascent: bool = False
    steps: int | None = Field(default=None, ge=1)
    draws: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_or_two_stages(self) -> "ModelSection":
        if (self.classifier is None) == (self.experts is None):
            raise ValueError("give either a classifier or experts (one per sigma)")
        if self.core is None and (self.thresholds is not None or self.selector is not None):
            raise ValueError("thresholds and a selector go with a core network; name one")
        one_sigma, routed = self.sigma is not None, self.router is not None
        if self.core is not None and (one_sigma != (self.thresholds is not None) or (one_sigma and routed)):
            raise ValueError(
                "beside a core network, give a classifier, one sigma and thresholds, and no router (ACES); or several "
                "sigmas, where the core states a radius of its own"
            )
        if self.neighbours is None and (self.k is not None or self.centre is not None):
            raise ValueError("k and centre go with neighbours, by whose distance sigma changes; name them")
        if not self.ascent and (self.steps is not None or self.draws is not None):
            raise ValueError("steps and draws go with ascent = true, by which the sigma of each input is found")
        own = (self.neighbours is not None) + self.ascent
        if own == 0 and self.rate is not None:
            raise ValueError("a rate goes with neighbours or with an ascent")
        if own == 2 or (own and (self.sigma is None or self.core is not None)):
            raise ValueError(
                "for a sigma of each input, give a classifier, one sigma about which they lie, and neighbours or ascent"
            )
        if self.confidences is not None and self.sigmas is None:
            raise ValueError("confidences go with several sigmas, where votes may pass from stage to stage")
        if self.router is None:
            if self.sigma_e is not None or (self.sigma is None) == (self.sigmas is None):
                raise ValueError("without a router, give a classifier and one sigma, or several sigmas for a cascade")
            if self.sigma is not None and self.experts is not None:
                raise ValueError("experts go with sigmas, one expert for each; with one sigma, give a classifier")
        elif self.sigma is not None:
            raise ValueError("with a router, give sigmas and sigma_e instead of sigma")
        elif self.sigmas is None or self.sigma_e is None:
            raise ValueError("a router needs sigmas (the candidates) and sigma_e (its own noise)")
        return self


class DataSection(Section):
    """Which images, and for folders and hubs how they are brought to one size: shorter side, then central square."""

    source: str
    resize: int | None = Field(default=None, ge=1)
    crop: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str | dict):
            raise ValueError("give a reference as a string, or a table with source, resize and crop")
        return {"source": value} if isinstance(value, str) else value


class CertifySection(Section):
    """How certificates are made. ``rule`` is fusion for two stages and cohen for one, unless named.

    ``budget`` "adaptive" takes n votes at most, and stops where more would not help: at ``radii``, by default those of
    the tables, or up to a ``tolerance`` on the radius. Without a ``seed``, a secret one is drawn for every run.
    """

    n: int = Field(default=10_000, ge=1)
    n0: int = Field(default=100, ge=1)
    alpha: float = Field(default=0.001, gt=0, lt=1)
    rule: str | None = None
    budget: Literal["fixed", "adaptive"] = "fixed"
    radii: tuple[float, ...] | None = None
    tolerance: float | None = Field(default=None, gt=0)
    seed: int | None = None

    @model_validator(mode="after")
    def _one_target(self) -> "CertifySection":
        if self.budget == "fixed" and (self.radii is not None or self.tolerance is not None):
            raise ValueError('radii and tolerance are for budget = "adaptive": a fixed budget goes to n')
        if self.radii is not None and self.tolerance is not None:
            raise ValueError("give radii or a tolerance, not both")
        return self


class EngineSection(Section):
    """How the networks are run."""

    batch_size: int | None = Field(default=None, ge=1)
    device: str | None = None
    dtype: str = "float32"
    compile: bool = False
    threads: int | None = Field(default=None, ge=1)


class TunedSection(Section):
    """On which inputs `dualrs tune` chose the rule, which wrote this; whoever shows results there has to say so.

    ``inputs`` are hashes of their ids, several to a text; ``weights`` those of the radii, if they were not all alike.
    """

    rule: str
    dataset: str
    dataset_fingerprint: str
    seed: str
    n: int
    n0: int
    alpha: float
    radii: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    inputs: tuple[str, ...]

    @property
    def record(self) -> dict[str, str]:
        """What a ledger keeps of it."""
        named = {name: getattr(self, name) for name in ("rule", "dataset", "dataset_fingerprint", "seed")}
        return {**named, "inputs": "".join(self.inputs)}


class StartSection(Section):
    """The networks that rounds of training start from, as references, and the sigmas to choose from.

    A classifier (NETWORK, or DENOISER | NETWORK), or an expert for each sigma.
    """

    classifier: str | None = None
    experts: dict[float, str] | None = None
    sigmas: tuple[float, ...] = Field(min_length=2)
    sigma_e: float = Field(gt=0)

    @model_validator(mode="after")
    def _one_or_many(self) -> "StartSection":
        if (self.classifier is None) == (self.experts is None):
            raise ValueError("give either a classifier or experts (one per sigma)")
        if self.experts is not None and set(self.experts) != set(self.sigmas):
            raise ValueError(f"experts for {sorted(self.experts)}, but the sigmas are {sorted(self.sigmas)}")
        if tuple(sorted(set(self.sigmas))) != self.sigmas or self.sigmas[0] <= 0:
            raise ValueError(f"sigmas are different positive numbers that rise, got {self.sigmas}")
        if self.sigma_e < self.sigmas[-1]:
            raise ValueError(f"sigma_e = {self.sigma_e:g} lies below the largest sigma {self.sigmas[-1]:g}")
        return self


class AssignSection(Section):
    """Votes of the router on the inputs that the classifier is then fine-tuned on."""

    inputs: str = "::"
    n: int = Field(default=100, ge=1)
    alpha: float = Field(default=0.001, gt=0, lt=1)


class LabelSection(AssignSection):
    """Votes of every expert at its sigma on training inputs; ``reuse`` is an older ledger whose votes may serve."""

    reuse: str | None = None


class ScheduleSection(Section):
    """How long, how fast and by which optimizer a network is trained.

    The rate halves after every so many epochs, or is a tenth from each of ``drop_at`` on; with neither it rises for a
    tenth of the time and then falls to nothing.
    """

    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=2)
    rate: float = Field(gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    halve_every: int = Field(default=0, ge=0)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    drop_at: tuple[int, ...] | None = None


class RouterSection(ScheduleSection):
    """The router and its loss; defaults are the paper's for CIFAR-10, with a smaller network.

    ``balanced`` is w_e = 1/q_i; left out, it is so for a classifier and not for experts, as the paper found best.
    ``loss`` is a function of the user's own in place of the paper's terms, ``method`` another way to train.
    """

    denoiser: str | None = None
    network: str = "lean-resnet"
    network_args: dict[str, Any] = {}
    consistency_weight: float = Field(default=40.0, ge=0)
    entropy_weight: float = Field(default=0.5, ge=0)
    noise_copies: int = Field(default=2, ge=1)
    gate: Literal["strong", "weak", "none"] = "strong"
    balanced: bool | None = None
    hard: bool = False
    loss: str | None = None
    method: str = "consistency"
    method_args: dict[str, Any] = {}
    epochs: int = Field(default=90, ge=1)
    batch_size: int = Field(default=256, ge=2)
    rate: float = Field(default=0.01, gt=0)
    halve_every: int = Field(default=30, ge=0)


class MethodSection(ScheduleSection):
    """How a classifier is trained: by a method with its settings, and for some methods a teacher.

    ``loss`` is a function of the user's own in place of cross-entropy.
    """

    method: str = "gaussian"
    method_args: dict[str, Any] = {}
    teacher: str | None = None
    loss: str | None = None


class FinetuneSection(MethodSection):
    """Fine-tuning of the classifier at the assigned sigmas; defaults are the paper's for CIFAR-10 (a constant rate)."""

    epochs: int = Field(default=15, ge=1)
    batch_size: int = Field(default=128, ge=2)
    rate: float = Field(default=2e-5, gt=0)
    halve_every: int = Field(default=15, ge=0)


class ClassifierSection(MethodSection):
    """A classifier that is trained by itself: fresh, or going on from ``start``; and where.

    Rate and decay are 3e-3 and 0.05 unless given; 0.1 and 1e-4 with SGD, 2e-5 and 0.01 when it goes on.
    """

    denoiser: str | None = None
    network: str = "lean-resnet"
    network_args: dict[str, Any] = {}
    start: str | None = None
    sigma: str = "0.25,0.5,1.0"
    epochs: int = Field(default=15, ge=1)
    batch_size: int = Field(default=128, ge=2)
    rate: float = Field(default=3e-3, gt=0)
    weight_decay: float = Field(default=0.05, ge=0)
    device: str | None = None
    dtype: str | None = None
    compile: bool = False

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("optimizer") == "sgd":
            return {"rate": 0.1, "weight_decay": 1e-4} | value
        return {"rate": 2e-5, "weight_decay": 0.01} | value if value.get("start") is not None else value
