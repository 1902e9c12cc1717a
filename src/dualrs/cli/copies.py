"""Copies of an image as the networks of a run saw them: noisy, drawn again from their address, and denoised."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualrs.errors import ForeignLedger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from dualrs.config import DataSection
    from dualrs.data.images import Pixels
    from dualrs.report.gallery import Copies, Why
    from dualrs.sampling.auxiliary import Vote
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header


def networks_of(
    header: "Header", recipe: Path | None, bundle: Path | None
) -> "tuple[SmoothedModel, DataSection | None]":
    """The networks of the run, and the data that the recipe names."""
    from dualrs.config import load_recipe
    from dualrs.jobs.opening import fingerprints
    from dualrs.pipeline.build import build_model

    loaded = load_recipe(recipe, {} if recipe else {"data": "unused:unused"}, bundle=bundle)
    folder = bundle if bundle is not None or recipe is None else recipe.parent
    smoothed = build_model(loaded, None if folder is None else folder.resolve())
    for name, fingerprint in fingerprints(smoothed).items():
        if header.models.get(name) != fingerprint:
            raise ForeignLedger(f"the network {name!r} of {bundle or recipe} is not the one that voted in this ledger")
    return smoothed, loaded.data if recipe else None


def copies_of(header: "Header", why: "Why", image: "Pixels", smoothed: "SmoothedModel | None") -> "Copies":
    """The image of an input, the first noisy copy that voted at each stage, and what its denoiser made of that."""
    import numpy as np

    from dualrs.report.gallery import Copies
    from dualrs.sampling.noise import FIRST_NOISE, NOISE, SHARED, NoiseSource, draw_block, noise_stream
    from dualrs.votes import Part, Stage, Stream

    if header.noise.removesuffix(SHARED) not in (NOISE, FIRST_NOISE):
        raise ForeignLedger(f"the noise of this run is {header.noise}, which this version of dualrs does not draw")
    scheme = header.scheme
    stages = [] if scheme.router_sigma is None else [(Stage.ROUTER, scheme.router_sigma)]
    stages += [(Stage.CLASS, sigma) for sigma in scheme.sigmas_of(why.certificate)]
    source = NoiseSource(scheme.purpose, header.seed, by_name=header.noise.startswith(FIRST_NOISE))  # without torch
    noisy: list[Pixels] = []
    denoised: list[Pixels | None] = []
    for stage, sigma in stages:
        drawn = noise_stream(Stream(stage, Part.ESTIMATION, sigma), header.noise, scheme.router_sigma)
        noise = draw_block(source, why.id, image, drawn, 0)[0]
        levels = image.astype(np.int64) + noise.reshape(image.shape)
        noisy.append(np.clip(levels, 0, 255).astype(np.uint8))
        if smoothed is None:
            denoised.append(None)
            continue
        from dualrs.sampling.auxiliary import votes_of

        vote = votes_of(source, why.id, image, drawn, 0, 1)
        denoised.append(_denoise(smoothed.network(stage, sigma), levels, sigma, vote))
    return Copies(image, noisy, denoised)


def _denoise(
    network: "nn.Module", levels: "NDArray[np.int64]", sigma: float, vote: "Sequence[Vote]"
) -> "Pixels | None":
    """What the denoiser of a network made of a vote's noisy image, in 8-bit levels; None where there is no denoiser."""
    import numpy as np
    import torch

    from dualrs.models.denoise import OnLogits
    from dualrs.models.noisy import takes_randomness
    from dualrs.sampling.auxiliary import VoteRandomness

    denoiser = getattr(network.front if isinstance(network, OnLogits) else network, "denoiser", None)
    if denoiser is None:
        return None
    device = next(denoiser.parameters(), torch.empty(0)).device
    with torch.inference_mode():
        drawing = {"randomness": VoteRandomness(vote, device)} if takes_randomness(denoiser) else {}
        clean = denoiser(torch.from_numpy(levels[None]).to(device).float() / 255, sigma, **drawing)[0]
    return np.asarray((255 * clean.clamp(0, 1)).round().byte().cpu().numpy())
