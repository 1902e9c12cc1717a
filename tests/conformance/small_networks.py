"""Networks with random weights that a test can bear."""

import torch


def randomised(module):
    """Every parameter random, also those that start at zero; layers keep the scale of what they are given."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        scale = (len(parameter) / parameter.numel()) ** 0.5 if parameter.ndim > 1 else 0.1
        parameter.data = scale * torch.randn(parameter.shape, generator=generator)
    return module.eval()


def small_unet():
    from diffusers import UNet2DModel

    return randomised(
        UNet2DModel(
            sample_size=16,
            block_out_channels=(32, 32),
            layers_per_block=1,
            down_block_types=("DownBlock2D",) * 2,
            up_block_types=("UpBlock2D",) * 2,
        )
    )
