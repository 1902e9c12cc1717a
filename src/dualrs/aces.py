"""Aces: a smoothed selector sends each input to a smoothed classifier or to a plain core network (Horvath et al. 2022).

Enters: modules, images. Leaves: certificates. The rule is in `dualrs.certificates.aces`.
"""

from collections.abc import Sequence
from typing import final

import torch
from torch import nn

from dualrs.certificates import Certificate, Certificates, Rule, aces_rule, rule
from dualrs.collect import Report
from dualrs.errors import BadSetting
from dualrs.models.entropy import EntropyBins
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import BATCH_SIZE, Slot
from dualrs.sampling.noise import check_sigma
from dualrs.smoothed import Ids, Images, SmoothedModel
from dualrs.votes import PLAIN, SamplingPlan, Stage, Streams


@final
class Aces(SmoothedModel):
    """A classifier smoothed at ``sigma`` where a selector is sure, and elsewhere the ``core`` network, without noise.

    The selector, smoothed at sigma too, compares the entropy of a network's answer (in nats) with ``thresholds``: low,
    and the classifier answers. That network is the classifier itself unless ``selector`` is given. Votes serve every
    threshold; a certificate is about one of them. With ``share``, selector and classifier vote on the same copies.
    """

    def __init__(
        self,
        classifier: nn.Module,
        core: nn.Module,
        sigma: float,
        thresholds: Sequence[float],
        *,
        selector: nn.Module | None = None,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
        share: bool = True,
    ) -> None:
        self.sigmas = (check_sigma(sigma),)
        self.sigma_e = self.sigmas[0]
        self.classifier = NoisyModel("classifier", classifier)
        self.core = NoisyModel("core network", core)
        self.thresholds = tuple(map(float, thresholds))
        self.selector = NoisyModel(
            "selector", EntropyBins(classifier if selector is None else selector, self.thresholds)
        )
        super().__init__(batch_size=batch_size, device=device, dtype=dtype, compile=compile, share=share)

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """Selector and classifier at sigma, and the core without noise."""
        sigma = self.sigmas[0]
        return {
            (Stage.ROUTER, sigma): self.selector,
            (Stage.CLASS, sigma): self.classifier,
            (PLAIN.stage, PLAIN.sigma): self.core,
        }

    @property
    def streams(self) -> Streams:
        """The streams of votes that this model has; known once the engine has seen an image."""
        classes = self.engine.answers[(Stage.CLASS, self.sigmas[0])]
        return Streams(self.sigmas, classes, self.sigma_e, self.thresholds)

    def rule(self, name: str | None = None) -> Rule:
        """Rule `aces` at one of the thresholds, the first by default."""
        known = {found.name: found for found in (rule(aces_rule(t)) for t in self.thresholds)}
        if name is None:
            return next(iter(known.values()))
        chosen = rule(name).name
        if chosen not in known:
            raise BadSetting(
                f"rule {name!r} does not fit this model with a core network; its rules are {', '.join(known)}"
            )
        return known[chosen]

    def certify(
        self,
        x: Images,
        *,
        n: int = 10_000,
        n0: int = 100,
        alpha: float = 0.001,
        rule: str | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: Report | None = None,
    ) -> Certificate | Certificates:
        """Certify one image (channels, height, width) or a batch; uint8, or float in [0, 1].

        Where the core answers, the outcome is "predicted": a class without a radius. Without a ``seed``, a secret one
        is drawn; it stands in the certificate.
        """
        result = self._certify(x, SamplingPlan(n0, n), self.rule(rule), alpha, seed, ids, progress, None)
        return result[0] if x.ndim == 3 else result
