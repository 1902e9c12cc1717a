"""Routers for the comparison with networks that see no noise: made of bundled networks, without training."""

from torch import nn

from dualrs.models import zoo
from dualrs.models.lipschitz import LipschitzNet, MarginBins

THRESHOLDS = (
    0.1,
    0.25,
)  # of the radius that the 1-Lipschitz network states: up to the first, sigma 0.25; above both, 1


def margin_router() -> nn.Module:
    """A router without noise over three sigmas: the larger the margin of the 1-Lipschitz network, the more noise."""
    network = zoo.load("cifar10-lipschitz")
    assert isinstance(network, LipschitzNet), "its card says so"
    return MarginBins(network, THRESHOLDS)


def core_router() -> nn.Module:
    """The first bundled router, whose first answer now means the network without noise in place of sigma 0.25."""
    router = zoo.load("cifar10-first-router")
    del router.routes
    return router
