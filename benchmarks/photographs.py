"""Images of 224 x 224 and a thousand classes on one core: where the time of a vote goes.

    python -m benchmarks.photographs        # FFDNet and EfficientNet-Lite0 of the zoo, about a minute

Processor time, so that other processes do not count; the image is random, as no speed depends on it. The networks keep
channels last; channels first stands beside it.
"""

from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.engine import processor_seconds
from dualrs.models.hardware import autocast, keep_memory
from dualrs.pipeline.networks import Networks
from dualrs.sampling.noise import NoiseSource, draw_block
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream

SIGMA, COPIES = 0.5, 4  # the default batch of such networks


def _seconds(network: nn.Module, noisy: Tensor, *told: float) -> float:
    """Processor time of a batch, the least of a few."""
    return min(processor_seconds(lambda: network(noisy, *told))[1] for _ in range(3))


def main() -> None:
    """Print copies a second of noise, denoiser and classifier, and the share of the noise."""
    keep_memory()
    torch.set_num_threads(1)
    networks = Networks()
    denoised, plain = networks("zoo:ffdnet | zoo:efficientnet-lite0"), networks("zoo:efficientnet-lite0")
    image = (np.random.default_rng(0).random((3, 224, 224)) * 255).astype(np.uint8)
    source, stream = NoiseSource(Purpose.TRIAL, 0), Stream(Stage.CLASS, Part.ESTIMATION, SIGMA)
    draw_block(source, "", image, stream, 0)  # makes the table, and takes the memory that is kept
    noise, drawing = processor_seconds(lambda: draw_block(source, "", image, stream, 0))
    noisy = torch.from_numpy((noise[:COPIES] + image.reshape(-1)).reshape(-1, *image.shape)).float() / 255
    print(f"noise: {BLOCK / drawing:,.0f} copies a second")
    runs: list[tuple[str, nn.Module, tuple[float, ...]]] = [
        ("EfficientNet-Lite0", plain, ()),
        ("the same behind FFDNet", denoised, (SIGMA,)),
    ]
    for (name, network, told), dtype in product(runs, ("float32", "bfloat16")):
        with autocast(noisy.device, dtype):
            first, last = (
                _seconds(network.to(memory_format=layout), noisy, *told)  # type: ignore[call-overload]
                for layout in (torch.contiguous_format, torch.channels_last)
            )
        share = drawing / BLOCK / (drawing / BLOCK + last / COPIES)
        print(
            f"{name}, {dtype}: {COPIES / last:.1f} images a second, with channels first {COPIES / first:.1f}; "
            f"noise is {100 * share:.1f} % of the time"
        )


if __name__ == "__main__":
    main()
