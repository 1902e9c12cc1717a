"""Recipes: one typed TOML file per experiment."""

from typing import Literal

from pydantic import Field, model_validator

from dualrs.config.sections import (
    AssignSection,
    CertifySection,
    ClassifierSection,
    DataSection,
    EngineSection,
    FinetuneSection,
    LabelSection,
    ModelSection,
    RouterSection,
    Section,
    StartSection,
    TunedSection,
)


class Recipe(Section):
    """Certify: which networks, which data, how."""

    title: str = ""
    model: ModelSection
    data: DataSection
    certify: CertifySection = CertifySection()
    engine: EngineSection = EngineSection()
    tuned: TunedSection | None = None


class RoundsRecipe(Section):
    """Train a router, and with it a classifier, in turn; the result is certified by the settings under ``certify``.

    ``rounds`` says what is trained in which order. Labels are made before each router, sigmas assigned before each
    fine-tuning of the classifier.
    """

    title: str = ""
    data: DataSection
    test: DataSection
    seed: int = 0
    rounds: tuple[Literal["router", "classifier"], ...] = ("router", "classifier", "router")
    start: StartSection
    label: LabelSection = LabelSection()
    router: RouterSection = RouterSection()
    assign: AssignSection = AssignSection()
    finetune: FinetuneSection = FinetuneSection()
    certify: CertifySection = CertifySection()
    engine: EngineSection = EngineSection()

    @model_validator(mode="after")
    def _in_turn(self) -> "RoundsRecipe":
        if (
            any(kind != ("router", "classifier")[place % 2] for place, kind in enumerate(self.rounds))
            or not self.rounds
        ):
            raise ValueError(
                f"rounds begin with a router and alternate, as router, classifier, router; got {self.rounds}"
            )
        if self.start.experts is not None and len(self.rounds) > 1:
            raise ValueError("experts stay as they are: with a pool of them, rounds is just router")
        return self


class ClassifierRecipe(Section):
    """Train one classifier, by any of the methods, and measure it on ``test``."""

    title: str = ""
    data: DataSection = DataSection(source="cifar10:train")
    test: DataSection = DataSection(source="cifar10:test")
    seed: int = Field(default=0, ge=0)
    classifier: ClassifierSection = ClassifierSection()
