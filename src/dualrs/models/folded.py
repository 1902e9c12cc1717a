"""diffusers' UNet2DModel on folded pixels, as the core of a denoiser: the yardstick of the lean one."""

import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.extras import need
from dualrs.models.lean import fold


class FoldedUNet(nn.Module):
    """The core of a denoiser (see `Preconditioned`): a UNet2DModel of three resolutions that sees log sigma as time."""

    def __init__(self, width: int = 32, layers: int = 1) -> None:
        super().__init__()
        diffusers = need("diffusers", "diffusion", "a UNet2DModel")
        self.unet = diffusers.UNet2DModel(
            in_channels=12,
            out_channels=12,
            layers_per_block=layers,
            block_out_channels=(width, 2 * width, 4 * width),
            down_block_types=("DownBlock2D",) * 3,
            up_block_types=("UpBlock2D",) * 3,
            add_attention=False,
            norm_num_groups=8,
        )

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """From noisy images of unit variance to images of the same shape; ``sigma`` has shape (1 or batch,)."""
        out: Tensor = self.unet(fold(x), 250 * sigma.log().expand(len(x)), return_dict=False)[0]
        return F.pixel_shuffle(out, 2)
