"""Intervals: an L2 radius for a plain network, by bounds on every unit (interval bound propagation).

Enters: a sequence of convolutions, linear layers, batch normalisation, ReLU and average pooling. Leaves: a network that
states a radius. The first layer turns the L2 ball of radius r about the image into a box: unit j moves by at most
r |W_j|. From there on boxes are pushed through: centres c to W c + b, half-widths h to |W| h, and ReLU is monotone. The
last layer is bounded for the difference of two classes at once. Gowal et al. 2018; Mueller et al. 2021 certify the
gates of ACE so.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.errors import BadModel
from dualrs.models.noisy import class_names
from dualrs.models.norms import rounding
from dualrs.models.stated import LEVELS, Statement

_LARGEST = 4.0  # radius that is looked for
_HALVINGS = 12

_PASSED = (nn.Flatten, nn.Identity, nn.Dropout, nn.Dropout2d)  # which move no unit, in evaluation mode


class _Affine(NamedTuple):
    """A layer y = W x + b as functions: of x without b, with the sizes of W, and the squares of W."""

    weight: Tensor
    plain: Callable[[Tensor], Tensor]
    sizes: Callable[[Tensor], Tensor]
    squares: Callable[[Tensor], Tensor]
    bias: Tensor  # that broadcasts
    terms: int  # of a sum


class Box(NamedTuple):
    """Centres and half-widths of the units. ``ball`` is the L2 radius where the units are still those of the image."""

    centre: Tensor
    half: Tensor
    ball: float | None


class Intervals(nn.Module):
    """A plain network, with radii from interval bounds in float64 on the CPU."""

    def __init__(self, network: nn.Sequential) -> None:
        super().__init__()
        self.network = network
        self.training = network.training
        self._layers = _flat(network)
        if not self._layers or not isinstance(self._layers[-1], nn.Linear):
            raise BadModel("interval bounds are for a network that ends in a linear layer")
        self._steps()  # refuses what has no bounds

    @property
    def classes(self) -> tuple[str, ...]:
        """What the network calls its classes."""
        return class_names(self.network)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the network."""
        logits: Tensor = self.network(images)
        return logits

    @torch.no_grad()
    def state(self, pixels: Tensor) -> Statement:
        """The class of each image, and the largest radius that halving finds at which bounds keep it."""
        *before, last = self._steps()
        found = [_radius(before, last, image[None].cpu().double() / LEVELS) for image in pixels]
        radii = torch.tensor([radius for _, radius in found], dtype=torch.float64)
        return Statement(torch.tensor([y for y, _ in found]), radii, len(last.bias))

    def _steps(self) -> list[Any]:
        return [layer if isinstance(layer, (nn.ReLU, *_PASSED)) else _affine(layer) for layer in self._layers]


def _radius(before: list[Any], last: _Affine, image: Tensor) -> tuple[int, float]:
    point = image
    for step in before:
        point = _pushed(step, Box(point, torch.zeros_like(point), None)).centre
    y = int((last.plain(point) + last.bias).argmax())
    held, lost = 0.0, _LARGEST
    if not _keeps(before, last, image, y, held):
        return y, 0.0
    for _ in range(_HALVINGS):
        middle = (held + lost) / 2
        held, lost = (middle, lost) if _keeps(before, last, image, y, middle) else (held, middle)
    return y, held


def _keeps(before: list[Any], last: _Affine, image: Tensor, y: int, radius: float) -> bool:
    """Whether no image within a radius is answered by another class than y.

    Guarantee: for 8-bit images, in real numbers and as this file computes alike. Half-widths hold what rounding may add
    to any point of the box, at each layer.
    Assumes: sums of products in float64 on the CPU, in any order.
    """
    box = Box(image, torch.full_like(image, 2 * rounding(1)), radius)  # of the division by 255
    for step in before:
        box = _pushed(step, box)
    weight, bias = last.weight, last.bias
    gaps = _linear(weight[y] - weight, bias[y] - bias)
    # Each of the two logits is rounded where the network computes it, and the difference of their weights here.
    sizes = _linear(weight[y].abs() + weight.abs(), bias[y].abs() + bias.abs())
    hidden = 2 * rounding(last.terms) * (sizes.plain(box.centre.abs() + box.half + _far(box)) + sizes.bias)
    found = _pushed(gaps, box)
    lowest = (found.centre - found.half - hidden)[0]
    lowest[y] = torch.inf
    return bool((lowest > 0).all())


def _pushed(step: Any, box: Box) -> Box:
    """What a layer makes of a box, or of the first ball."""
    if isinstance(step, nn.ReLU):
        low, high = (box.centre - box.half - _far(box)).relu(), (box.centre + box.half + _far(box)).relu()
        # Halves are rounded: what they lose is put back.
        return Box((low + high) / 2, (high - low) / 2 + 4 * rounding(1) * (low + high), None)
    if isinstance(step, nn.Flatten):
        return box._replace(centre=box.centre.flatten(1), half=box.half.flatten(1))
    if not isinstance(step, _Affine):
        return box
    centre = step.plain(box.centre) + step.bias
    half = step.sizes(box.half)
    if box.ball is not None:
        half = half + box.ball * step.squares(torch.ones_like(box.centre)).sqrt()
    farthest = step.sizes(box.centre.abs() + box.half + _far(box)) + step.bias.abs()
    return Box(centre, half * (1 + 4 * rounding(step.terms)) + 2 * rounding(step.terms) * farthest, None)


def _far(box: Box) -> float:
    """How far a unit of the image moves in the ball."""
    return 0.0 if box.ball is None else box.ball


def _affine(layer: nn.Module) -> _Affine:
    """A layer as functions of float64; refuses those without bounds."""
    match layer:
        case nn.Linear():
            return _linear(layer.weight.detach().cpu().double(), _bias(layer))
        case nn.Conv2d() if layer.padding_mode == "zeros":
            weight = layer.weight.detach().cpu().double()
            convolved = partial(
                F.conv2d, stride=layer.stride, padding=layer.padding, dilation=layer.dilation, groups=layer.groups
            )
            bias = _bias(layer)[:, None, None]
            return _of(lambda w: lambda x: convolved(x, w), weight, bias, weight[0].numel())
        case nn.BatchNorm1d() | nn.BatchNorm2d() if layer.running_mean is not None and layer.running_var is not None:
            scale = (layer.running_var.cpu().double() + layer.eps).rsqrt()
            scale = scale if layer.weight is None else scale * layer.weight.detach().cpu().double()
            shift = -layer.running_mean.cpu().double() * scale
            shift = shift if layer.bias is None else shift + layer.bias.detach().cpu().double()
            shape = (-1, 1, 1) if isinstance(layer, nn.BatchNorm2d) else (-1,)
            return _of(lambda w: lambda x: x * w, scale.view(shape), shift.view(shape), 1)
        case nn.AvgPool2d() if layer.divisor_override is None and layer.count_include_pad and not layer.ceil_mode:
            sides = layer.kernel_size if isinstance(layer.kernel_size, tuple) else (layer.kernel_size,) * 2
            pooled = partial(F.avg_pool2d, kernel_size=sides, stride=layer.stride, padding=layer.padding)
            share = torch.tensor(1.0, dtype=torch.float64)  # of a window: its mean, and in squares that over its area
            area = int(sides[0] * sides[1])
            made = _of(lambda w: lambda x: pooled(x) * w, share, torch.zeros(1).double(), area)
            return made._replace(squares=lambda x: pooled(x) / area)
    raise BadModel(
        f"there are no interval bounds for {type(layer).__name__} in this form; they are for convolutions with zero "
        "padding, linear layers, batch normalisation, ReLU, average pooling and Flatten, one after the other"
    )


def _of(apply: Callable[[Tensor], Callable[[Tensor], Tensor]], weight: Tensor, bias: Tensor, terms: int) -> _Affine:
    return _Affine(weight, apply(weight), apply(weight.abs()), apply(weight.square()), bias, terms)


def _linear(weight: Tensor, bias: Tensor) -> _Affine:
    return _of(lambda w: lambda x: F.linear(x, w), weight, bias, weight.shape[1])


def _bias(layer: nn.Linear | nn.Conv2d) -> Tensor:
    weight = layer.weight.detach().cpu().double()
    return weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach().cpu().double()


def _flat(network: nn.Module) -> list[nn.Module]:
    """The layers one after the other, those of nested sequences too."""
    if not isinstance(network, nn.Sequential):
        return [network]
    return [layer for part in network for layer in _flat(part)]
