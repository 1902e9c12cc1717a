"""ResNets: sizes, names and answers of the published networks; normalisation inside."""

import re

import pytest
import torch
from torch import nn

from dualrs.errors import BadImage, BadSetting
from dualrs.models.noisy import NoisyModel
from dualrs.models.prepare import Preparation
from dualrs.models.resnet import BasicBlock, Bottleneck, ResNet, cifar_resnet, resnet50


def parameters(network):
    return sum(p.numel() for p in network.parameters())


def images(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def fifty():
    return resnet50(1000).eval()


# Sizes and names


@pytest.mark.parametrize(("depth", "count"), [(20, 272_474), (56, 855_770), (110, 1_730_714)])
def test_cifar_networks_have_the_published_number_of_parameters(depth, count):
    """He et al. print 0.27M, 0.85M and 1.7M, with shortcuts that pad; ours convolve, with 2,752 parameters more."""
    convolved_shortcuts = (16 * 32 + 2 * 32) + (32 * 64 + 2 * 64)
    assert convolved_shortcuts == 2752
    assert parameters(cifar_resnet(depth, 10)) == count
    assert (count - convolved_shortcuts) / 1e6 == pytest.approx({20: 0.27, 56: 0.85, 110: 1.73}[depth], abs=0.005)


def test_resnet50_has_the_published_number_of_parameters(fifty):
    assert parameters(fifty) == 25_557_032


def test_resnet50_has_the_state_dict_of_torchvision(fifty):
    state = fifty.state_dict()
    assert len(state) == 320  # 53 convolutions, 53 batch norms of five tensors each, a linear layer of two
    assert list(state)[:7] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
        "layer1.0.conv1.weight",
    ]
    assert list(state)[-2:] == ["fc.weight", "fc.bias"]
    shapes = {
        "conv1.weight": (64, 3, 7, 7),
        "layer1.0.conv1.weight": (64, 64, 1, 1),
        "layer1.0.conv2.weight": (64, 64, 3, 3),
        "layer1.0.conv3.weight": (256, 64, 1, 1),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.running_var": (256,),
        "layer2.3.bn3.bias": (512,),
        "layer3.5.conv1.weight": (256, 1024, 1, 1),
        "layer4.0.downsample.0.weight": (2048, 1024, 1, 1),
        "layer4.2.conv3.weight": (2048, 512, 1, 1),
        "fc.weight": (1000, 2048),
    }
    assert {name: tuple(state[name].shape) for name in shapes} == shapes
    blocks = {re.sub(r"^(layer\d\.\d+)\..*", r"\1", name) for name in state if name.startswith("layer")}
    assert blocks == {f"layer{stage}.{i}" for stage, n in enumerate((3, 4, 6, 3), 1) for i in range(n)}
    assert {name[:8] for name in state if "downsample" in name} == {f"layer{stage}.0" for stage in (1, 2, 3, 4)}


def test_resnet50_has_its_strides_on_the_3x3_convolutions(fifty):
    assert fifty.get_submodule("layer2.0.conv1").stride == (1, 1)
    assert fifty.get_submodule("layer2.0.conv2").stride == (2, 2)


def test_cifar_network_has_a_convolved_shortcut_where_the_width_changes():
    state = cifar_resnet(20, 10).state_dict()
    convolved = {name for name in state if re.search(r"downsample\.0", name)}
    assert convolved == {"layer2.0.downsample.0.weight", "layer3.0.downsample.0.weight"}


# Answers


def small(block):
    """Two stages of two blocks each, as quick to compare as it is telling."""
    torch.manual_seed(0)
    like = cifar_resnet(20, 7)
    stem, pool = like.conv1, like.maxpool
    if block is Bottleneck:
        stem, pool = nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False), nn.MaxPool2d(3, stride=2, padding=1)
    return ResNet(block, [2, 2], stem=stem, pool=pool, prepare=like.prepare, classes=7).eval()


def as_transformers(name):
    """What transformers calls a parameter."""
    name = re.sub(r"layer(\d)\.", lambda m: f"resnet.encoder.stages.{int(m[1]) - 1}.layers.", name)
    name = name.replace("downsample.0.", "shortcut.convolution.").replace("downsample.1.", "shortcut.normalization.")
    name = re.sub(r"(?<=layers\.\d\.)conv(\d)", lambda m: f"layer.{int(m[1]) - 1}.convolution", name)
    name = re.sub(r"(?<=layers\.\d\.)bn(\d)", lambda m: f"layer.{int(m[1]) - 1}.normalization", name)
    name = re.sub(r"^conv1", "resnet.embedder.embedder.convolution", name)
    name = re.sub(r"^bn1", "resnet.embedder.embedder.normalization", name)
    return re.sub(r"^fc", "classifier.1", name)


def test_bottlenecks_answer_as_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    ours = small(Bottleneck)
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[64, 128], depths=[2, 2], num_labels=7)
    theirs = transformers.ResNetForImageClassification(config).eval()
    generator = torch.Generator().manual_seed(1)
    for name, value in ours.state_dict().items():
        if "running_mean" in name or ("bn" in name and "bias" in name):
            value.copy_(torch.randn(value.shape, generator=generator) / 10)
        if "running_var" in name:
            value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    theirs.load_state_dict({as_transformers(name): value for name, value in ours.state_dict().items()})
    batch = images(2, 3, 45, 64)
    with torch.no_grad():
        expected = theirs(ours.prepare(batch)).logits
        torch.testing.assert_close(ours(batch), expected, rtol=1e-4, atol=1e-5)


def test_basic_block_adds_two_convolutions_to_its_shortcut():
    block = BasicBlock(4, 8, stride=2).eval()
    x = images(1, 4, 6, 6) - 0.5
    with torch.no_grad():
        inner = block.bn1(block.conv1(x)).clamp(min=0)
        expected = (block.bn2(block.conv2(inner)) + block.downsample(x)).clamp(min=0)
        assert torch.equal(block(x), expected)
        assert expected.shape == (1, 8, 3, 3)


@pytest.mark.parametrize("shape", [(2, 3, 32, 32), (1, 3, 17, 40), (1, 3, 64, 64)], ids=str)
@pytest.mark.parametrize("block", [BasicBlock, Bottleneck])
def test_any_size_of_image_is_taken(block, shape):
    with torch.no_grad():
        assert small(block)(images(*shape)).shape == (shape[0], 7)


def test_router_has_one_output_per_candidate_sigma():
    router = NoisyModel("router", cifar_resnet(20, classes=4).eval())
    assert router(images(2, 3, 32, 32), 0.25).shape == (2, 4)


# Normalisation


def test_normalisation_is_inside_and_published_weights_do_not_need_to_know():
    network = cifar_resnet(20, 10)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    std = torch.tensor([0.2023, 0.1994, 0.2010]).view(1, 3, 1, 1)
    batch = images(2, 3, 8, 8) * 3 - 1  # noise leaves [0, 1], and nothing is clipped
    torch.testing.assert_close(network.prepare(batch), (batch - mean) / std)
    assert not [name for name in network.state_dict() if "prepare" in name or "mean" in name.split(".")]


def test_fingerprint_tells_networks_with_the_same_weights_and_other_normalisation_apart():
    one, other = small(Bottleneck), small(Bottleneck)
    assert NoisyModel("router", one).fingerprint == NoisyModel("router", other).fingerprint
    other.prepare = Preparation([0.5] * 3, [0.5] * 3).eval()
    assert NoisyModel("router", one).fingerprint != NoisyModel("router", other).fingerprint


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_other_numbers_of_channels_are_normalised_by_the_mean_of_the_colours(channels):
    network = cifar_resnet(20, 10, channels).eval()
    with torch.no_grad():
        assert network(images(1, channels, 8, 8)).shape == (1, 10)
    assert network.prepare.mean.flatten().tolist() == pytest.approx([(0.4914 + 0.4822 + 0.4465) / 3] * channels)


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (3, 8, 8), (1, 8, 8, 3)], ids=["grey", "no batch", "channels last"])
def test_images_of_another_shape_are_refused(shape):
    with pytest.raises(BadImage, match="takes images with 3 channels"):
        cifar_resnet(20, 10)(images(*shape))


@pytest.mark.parametrize(("depth", "classes", "channels"), [(32, 10, 3), (20, 1, 3), (20, 10, 0)])
def test_impossible_settings_are_refused(depth, classes, channels):
    with pytest.raises(BadSetting):
        cifar_resnet(depth, classes, channels)
