"""Residual networks (He et al., 2016): classifiers, and the routers of the paper with one output per candidate sigma.

Enters: noisy images in [0, 1] units, of any size. Leaves: logits. Normalisation is inside the module. The networks for
CIFAR are those of Cohen et al. (2019): three stages of 16, 32 and 64 channels, and a 1x1 convolution with batch norm
on the shortcuts that change shape, where the original paper pads with zeros (2,752 parameters fewer). ResNet-50 is the
usual one, "v1.5", with the stride on its 3x3 convolutions. Parameters have the names of torchvision, so that published
weights load with ``load_state_dict``.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.prepare import Preparation

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, entering: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(entering, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(entering, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions make of x to x, then ReLU."""
        y: Tensor = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 convolutions, and a shortcut."""

    expansion = 4

    def __init__(self, entering: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(entering, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(entering, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions make of x to x, then ReLU."""
        y: Tensor = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(nn.Module):
    """A stem, stages that each halve the image and double the width, the mean over the image, a linear layer."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        blocks: Sequence[int],  # in each stage
        *,
        stem: nn.Conv2d,
        pool: nn.Module,
        prepare: Preparation,
        classes: int,
    ) -> None:
        super().__init__()
        self.prepare = prepare
        self.conv1 = stem
        self.bn1 = nn.BatchNorm2d(stem.out_channels)
        self.maxpool = pool
        entering = stem.out_channels
        for stage, count in enumerate(blocks):
            width = stem.out_channels * 2**stage
            strides = [1 if stage == 0 else 2, *[1] * (count - 1)]
            layer = nn.Sequential()
            for stride in strides:
                layer.append(block(entering, width, stride))
                entering = width * block.expansion
            self.add_module(f"layer{stage + 1}", layer)
        self.stages = len(blocks)
        self.fc = nn.Linear(entering, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, noisy: Tensor) -> Tensor:
        """Logits of a batch, shape (batch, classes)."""
        x = self.maxpool(self.bn1(self.conv1(self.prepare(noisy))).relu())
        for stage in range(self.stages):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def cifar_resnet(depth: int, classes: int, channels: int = 3) -> ResNet:
    """ResNet-20, 56 or 110 with random weights, for images of about 32 pixels."""
    if depth not in (20, 56, 110):
        raise BadSetting(f"depth must be 20, 56 or 110, got {depth}")
    prepare = _preparation(CIFAR_MEAN, CIFAR_STD, classes, channels)
    stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
    blocks = [(depth - 2) // 6] * 3
    return ResNet(BasicBlock, blocks, stem=stem, pool=nn.Identity(), prepare=prepare, classes=classes)


def resnet50(classes: int, channels: int = 3) -> ResNet:
    """ResNet-50 with random weights, for images of about 224 pixels."""
    prepare = _preparation(IMAGENET_MEAN, IMAGENET_STD, classes, channels)
    stem = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
    pool = nn.MaxPool2d(3, stride=2, padding=1)
    return ResNet(Bottleneck, [3, 4, 6, 3], stem=stem, pool=pool, prepare=prepare, classes=classes)


def _shortcut(entering: int, leaving: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and entering == leaving:
        return None
    return nn.Sequential(nn.Conv2d(entering, leaving, 1, stride, bias=False), nn.BatchNorm2d(leaving))


def _preparation(mean: Sequence[float], std: Sequence[float], classes: int, channels: int) -> Preparation:
    """Published numbers for colour images; their mean for any other number of channels."""
    if classes < 2 or channels < 1:
        raise BadSetting(f"a network needs at least 2 classes and 1 channel, got {classes} and {channels}")
    return Preparation(*(rgb if channels == 3 else (sum(rgb) / 3,) * channels for rgb in (mean, std)))
