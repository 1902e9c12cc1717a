"""Networks in eight bits: a lean residual classifier or router whose convolutions are integer arithmetic, for CPUs.

Enters: noisy images in [0, 1] units, and their sigma. Leaves: logits. Weights are whole numbers of -127 to 127 times a
scale for each channel. What flows between layers is a whole number of 0 to 255 times a step, which was chosen once on
noisy images (`eight_bits`), so no answer depends on the other images of a batch. Nearly all of these numbers lie below
128: sums of two products then fit into 16 bits, which is where older CPUs add them.

Where a sigma steers the float network, it steers scales, offsets and steps here, and the weights stay the same: the
network answers under the sigmas that it was made for.

Three ways to run it: oneDNN's integer convolutions on a CPU that has them; the same whole numbers in floating point
anywhere else, which is slow; and, where a gradient is asked for, as by an attack, the same weights without rounding
what flows between them, since rounding has no slope.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.denoise import MID, SPREAD, Sigma
from dualrs.models.lean import Block, ConvNorm, LeanResNet, fold

_MOST = 255  # the largest number between layers
_LARGEST = 127  # that of weights, and of nearly all numbers between layers
_SHARE = 0.9999  # what nearly all means
_SAMPLED = 1_000_000  # numbers of a layer that its step is found by


@dataclass(frozen=True)
class Whole:
    """Numbers in eight bits: ``step * (numbers - zero)``."""

    numbers: Tensor
    step: float
    zero: int

    def float(self) -> Tensor:
        """The same as floating-point numbers."""
        return (self.numbers.float() - self.zero) * self.step


class Step(nn.Module):
    """In which steps numbers are counted, for each sigma; numbers that may be negative count from the middle."""

    step: Tensor

    def __init__(self, sigmas: int, *, signed: bool) -> None:
        super().__init__()
        self.zero = (_LARGEST + 1) // 2 if signed else 0
        self.register_buffer("step", torch.ones(sigmas, dtype=torch.float64))

    def fit(self, x: Tensor, at: int) -> Tensor:
        """Choose the step for numbers like these; return them."""
        sizes = x.abs().flatten()
        sizes = sizes[:: -(-len(sizes) // _SAMPLED)]
        largest = float(sizes.kthvalue(max(1, int(_SHARE * len(sizes)))).values)
        self.step[at] = max(largest, 1e-6) / (_LARGEST - self.zero)
        return x

    def count(self, x: Tensor, at: int) -> Whole:
        """Numbers in eight bits."""
        step = float(self.step[at])
        return Whole((x / step).round_().add_(self.zero).clamp_(0, _MOST).to(torch.uint8), step, self.zero)


class Convolution(nn.Module):
    """A convolution, to which something may be added, and a ReLU unless its answers are ``signed``."""

    weight: Tensor
    scale: Tensor
    offset: Tensor

    def __init__(self, into: int, out: int, kernel: int, stride: int, sigmas: int, *, signed: bool = False) -> None:
        super().__init__()
        self.stride, self.padding, self.signed = stride, (kernel - 1) // 2, signed
        self._geometry = [self.stride] * 2, [self.padding] * 2, [1, 1], 1  # with dilation and groups, for oneDNN
        self.register_buffer("weight", torch.zeros(out, into, kernel, kernel, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(sigmas, out))
        self.register_buffer("offset", torch.zeros(sigmas, out))
        self.left = Step(sigmas, signed=signed)
        self._packed: dict[int, tuple[Tensor, ...]] = {}  # by sigma, in the order that oneDNN wants; made when needed

    def take(self, layer: ConvNorm, codes: Sequence[Tensor | None]) -> None:
        """Take the weights of a float layer over, steered by the code of each sigma."""
        weight = layer.conv.weight
        kernel = self.weight.shape[-1]
        if weight.shape[-1] != kernel:  # of the mean over some pixels, as one convolution
            weight = weight.expand(-1, -1, kernel, kernel) / kernel**2
        size = weight.abs().amax(dim=(1, 2, 3)).clamp(min=1e-12) / _LARGEST
        self.weight.copy_((weight / size[:, None, None, None]).round())
        for at, code in enumerate(codes):
            factor, offset = layer.folded(code)
            self.scale[at], self.offset[at] = size * factor, offset

    def smooth(self, x: Tensor, at: int, beside: Tensor | None = None) -> Tensor:
        """The answer without rounding."""
        weight = self.weight * self.scale[at][:, None, None, None]
        y = F.conv2d(x, weight, self.offset[at], self.stride, self.padding)
        y = y if beside is None else y + beside
        return y if self.signed else F.relu(y)

    def forward(self, x: Whole, at: int, beside: Whole | None = None) -> Whole:
        """The answer in eight bits; what is ``beside`` it is added, and may be written over."""
        if x.numbers.device.type != "cpu" or not has_integer_convolutions():
            y = F.conv2d(x.numbers.float() - x.zero, self.weight.float(), None, self.stride, self.padding)
            y = y * (x.step * self.scale[at])[:, None, None] + self.offset[at][:, None, None]
            y = y if beside is None else y + beside.float()
            return self.left.count(y if self.signed else F.relu(y), at)
        if at not in self._packed:
            self._packed[at] = self._pack(at)
        step, zero = float(self.left.step[at]), self.left.zero
        convolve: Callable[..., Tensor] = torch.ops.onednn.qconv2d_pointwise
        weight, scale, zeros, offset = self._packed[at]
        given = x.numbers, x.step, x.zero, weight, scale, zeros
        if beside is None:
            last = "none" if self.signed else "relu"
            y = convolve(*given, offset, *self._geometry, step, zero, torch.uint8, last, [], "")
        else:
            added: tuple[Any, ...] = beside.step, beside.zero, "sum", 1.0, "relu", [], ""
            y = torch.ops.onednn.qconv2d_pointwise.binary(
                *given, beside.numbers, offset, *self._geometry, step, zero, torch.uint8, *added
            )
        return Whole(y, step, zero)

    def _pack(self, at: int) -> tuple[Tensor, ...]:
        scale = self.scale[at]  # a negative one goes to the weights
        weight = self.weight * torch.where(scale < 0, -1, 1).to(torch.int8)[:, None, None, None]
        scale = scale.abs().clamp(min=1e-12)
        packed = torch.ops.onednn.qconv_prepack(weight, scale, 1.0, 0, *self._geometry, None)
        return packed, scale, torch.zeros(len(scale), dtype=torch.int32), self.offset[at].clone()

    def _load_from_state_dict(self, *given: Any) -> None:
        self._packed.clear()
        super()._load_from_state_dict(*given)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_packed": {}}


Run = Callable[..., Any]  # one of the ways to run a convolution: on what, at which sigma, beside what


class Residual(nn.Module):
    """Two convolutions beside a shortcut: `lean.Block` in eight bits."""

    def __init__(self, into: int, out: int, stride: int, sigmas: int) -> None:
        super().__init__()
        self.first = Convolution(into, out, 3, stride, sigmas)
        self.second = Convolution(out, out, 3, 1, sigmas)
        same = (into, stride) == (out, 1)
        self.shortcut = None if same else Convolution(into, out, stride, stride, sigmas, signed=True)

    def take(self, block: Block, codes: Sequence[Tensor | None]) -> None:
        """Take the weights of a float block over."""
        self.first.take(block.first, codes)
        self.second.take(block.second, codes)
        if self.shortcut is not None and block.shortcut is not None:
            self.shortcut.take(block.shortcut, [None] * len(codes))

    def forward(self, x: Any, at: int, run: Run) -> Any:
        """The block's answer, after its last ReLU."""
        y = run(self.first, x, at)
        return run(self.second, y, at, x if self.shortcut is None else run(self.shortcut, x, at))


class EightBitResNet(nn.Module):
    """`LeanResNet` in eight bits, under some sigmas; without sigmas, one that is told none."""

    def __init__(
        self, classes: int, widths: Sequence[int], blocks: Sequence[int], sigmas: Sequence[float] = ()
    ) -> None:
        super().__init__()
        self.sigmas = tuple(float(sigma) for sigma in sigmas)
        self.arguments = {"classes": classes, "widths": widths, "blocks": blocks, "sigmas": self.sigmas}
        count = max(1, len(self.sigmas))
        self.entered = Step(count, signed=True)
        self.stem = Convolution(12, widths[0], 3, 1, count)
        self.blocks = nn.ModuleList()
        into = widths[0]
        for stage, (width, many) in enumerate(zip(widths, blocks, strict=True)):
            for place in range(many):
                self.blocks.append(Residual(into, width, 2 if stage > 0 and place == 0 else 1, count))
                into = width
        self.head = nn.Linear(into, classes)

    def extra_repr(self) -> str:
        """The sigmas: the hash of a network covers what it prints."""
        return f"sigmas={self.sigmas}"

    def forward(self, images: Tensor, sigma: Sigma | None = None) -> Tensor:
        """Logits, shape (batch, classes)."""
        at = self._place(sigma)
        if images.requires_grad and torch.is_grad_enabled():
            return self._head(self._through(self._scaled(images, at), at, Convolution.smooth))
        whole: Whole = self._through(self._counted(images, at), at, Convolution.__call__)
        return self._head(whole.float())

    def fit(self, noisy: Tensor, sigma: float | None) -> None:
        """Choose every step for noisy images like these."""
        at = self._place(sigma)

        def run(layer: Convolution, x: Tensor, at: int, beside: Tensor | None = None) -> Tensor:
            return layer.left.fit(layer.smooth(x, at, beside), at)

        self._through(self.entered.fit(self._scaled(noisy, at), at), at, run)

    def _through(self, x: Any, at: int, run: Run) -> Any:
        x = run(self.stem, x, at)
        for block in self.blocks:
            x = block(x, at, run)
        return x

    def _head(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # it costs nothing, and rounded logits would be tied
            logits: Tensor = self.head(x.mean(dim=(2, 3)))
        return logits

    def _scaled(self, images: Tensor, at: int) -> Tensor:
        return fold((images - MID) / self._spread(at))

    def _counted(self, images: Tensor, at: int) -> Whole:
        """What `_scaled` gives, in eight bits; folded last, as eight bits are quicker to move."""
        step, zero = float(self.entered.step[at]), self.entered.zero
        steps = 1 / (self._spread(at) * step)
        numbers = images.float().mul(steps).add_(zero - MID * steps).round_().clamp_(0, _MOST).to(torch.uint8)
        return Whole(fold(numbers), step, zero)

    def _spread(self, at: int) -> float:
        return (self.sigmas[at] ** 2 + SPREAD**2) ** 0.5 if self.sigmas else SPREAD

    def _place(self, sigma: Sigma | None) -> int:
        if not self.sigmas:
            return 0
        given = sigma.flatten().tolist() if isinstance(sigma, Tensor) else [sigma]
        for place, known in enumerate(self.sigmas):
            if all(one is not None and abs(one - known) < 1e-6 for one in given):
                return place
        raise BadSetting(
            f"this network in eight bits was made for sigma {', '.join(f'{s:g}' for s in self.sigmas)}, each batch "
            "under one of them; make one for others with dualrs quantise"
        )


def has_integer_convolutions() -> bool:
    """Whether torch has oneDNN's integer convolutions on this CPU."""
    return bool(torch._C._has_mkldnn) and hasattr(torch.ops.onednn, "qconv2d_pointwise")


def eight_bits(network: nn.Module, batches: Iterable[tuple[float, Tensor]]) -> EightBitResNet:
    """A lean residual network in eight bits: its weights rounded, its steps chosen on noisy images of each sigma.

    A network that is told no sigma takes one batch, in which images may have several.
    """
    if not isinstance(network, LeanResNet):
        raise BadSetting(f"of our networks lean-resnet has a form in eight bits, and this is {type(network).__name__}")
    noisy = list(batches)
    sigmas = [] if network.code is None else [sigma for sigma, _ in noisy]
    if not noisy or (len(noisy) > 1 and not sigmas):
        raise BadSetting("a network that is told no sigma takes one batch, and one that is told takes one for each")
    if not all(sigma > 0 for sigma in sigmas):
        raise BadSetting(f"this network is told the sigma of its noise, which must be positive; got {min(sigmas):g}")
    theirs = [block for block in network.blocks if isinstance(block, Block)]
    widths, counts = _shape(theirs)
    made = EightBitResNet(network.head.out_features, widths, counts, sigmas).eval()
    with torch.inference_mode():
        codes = [None] if network.code is None else [network.code(torch.tensor([sigma])) for sigma in sigmas]
        made.stem.take(network.stem, codes)
        for ours, block in zip(made.blocks, theirs, strict=True):
            assert isinstance(ours, Residual), "what this network is made of"
            ours.take(block, codes)
        made.head.load_state_dict(network.head.state_dict())
        for sigma, images in noisy:
            made.fit(images, sigma)
    return made


def _shape(blocks: Sequence[Block]) -> tuple[list[int], list[int]]:
    """Widths of the stages and how many blocks each has; a stage begins where the image is halved."""
    starts = [k for k, block in enumerate(blocks) if k == 0 or block.stride > 1]
    ends = [*starts[1:], len(blocks)]
    widths = [blocks[start].second.conv.out_channels for start in starts]
    return widths, [end - start for start, end in zip(starts, ends, strict=True)]
