"""OpenAI's diffusion checkpoints, the two denoisers of the paper, turned into diffusers networks as they are loaded.

Enters: cifar10_uncond_50M_500K.pt of improved-diffusion or 256x256_diffusion_uncond.pt of guided-diffusion, or another
network of their shape. Leaves: a `DiffusionDenoiser` with the same function, in float32. Only names differ, and the
order of channels in attention: theirs is head by head, each head's queries, keys and values together; diffusers keeps
the three apart.

Names and shapes do not tell the number of heads, their order and the noise schedule. So a file is either known by its
checksum, or these are said, as in FILE.pt?heads=4&schedule=cosine, and the denoiser is tried.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from dualrs.errors import BadCheckpoint
from dualrs.models.diffusion import DiffusionDenoiser, NoiseSchedule, need_diffusers
from dualrs.models.trial import demand_finite, demand_restores


@dataclass(frozen=True)
class Layout:
    """One of OpenAI's U-Nets: its shape, and the schedule that it was trained under."""

    name: str
    size: int  # of the images, in pixels
    channels: int  # at full resolution
    multipliers: tuple[int, ...]  # of the channels at each level
    blocks: int  # residual blocks per level on the way down; there is one more on the way up
    attention: tuple[int, ...]  # levels that have it; the middle always does
    head_width: int
    residual_resampling: bool  # by residual blocks, as in guided-diffusion, not by convolutions
    dropout: float
    schedule: NoiseSchedule
    said: str  # the same settings as one says them
    thirds: bool = False  # all queries, then all keys, then all values (guided-diffusion's new attention order)
    sha256: str = ""  # of the published file, where it is known


CIFAR10 = Layout(
    name="cifar10_uncond_50M_500K.pt",
    size=32,
    channels=128,
    multipliers=(1, 2, 2, 2),
    blocks=3,
    attention=(1, 2),
    head_width=64,
    residual_resampling=False,
    dropout=0.3,
    schedule=NoiseSchedule(num_train_timesteps=4000, beta_schedule="squaredcos_cap_v2", timestep_scale=1000 / 4000),
    said="heads=4&schedule=cosine",
)
IMAGENET = Layout(
    name="256x256_diffusion_uncond.pt",
    size=256,
    channels=256,
    multipliers=(1, 1, 2, 2, 4, 4),
    blocks=2,
    attention=(3, 4, 5),
    head_width=64,
    residual_resampling=True,
    dropout=0.0,
    schedule=NoiseSchedule(num_train_timesteps=1000, beta_schedule="linear"),
    said="head_width=64&schedule=linear",
    sha256="a37c32fffd316cd494cf3f35b339936debdc1576dad13fe57c42399a5dbc78b1",
)
PUBLISHED = (CIFAR10, IMAGENET)

SETTINGS = ("heads", "head_width", "order", "schedule", "steps")  # that can be said, with ? and &
_SCHEDULES = {"cosine": "squaredcos_cap_v2", "linear": "linear"}

_RESIDUAL = {
    "norm1": "in_layers.0",
    "conv1": "in_layers.2",
    "time_emb_proj": "emb_layers.1",
    "norm2": "out_layers.0",
    "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}
_ATTENTION = {"group_norm": "norm", "to_q": "qkv", "to_k": "qkv", "to_v": "qkv", "to_out.0": "proj_out"}


def load_openai(source: str | Path) -> DiffusionDenoiser:
    """Load one of the paper's two checkpoints, or one of their shape as FILE.pt?heads=4&schedule=cosine.

    Which of the two it is, its tensors tell; what they cannot tell must be known by the checksum, or said.
    """
    name, asked, settings = str(source).partition("?")
    path = Path(name).expanduser()
    state = _read(path)
    for layout in PUBLISHED:
        if set(key_map(layout).values()) == set(state):
            told = _as_said(layout, settings, path) if asked else layout
            try:
                denoiser = convert(state, told).eval()
            except RuntimeError as error:
                raise BadCheckpoint(f"{path} has the names of {layout.name}, but tensors of other shapes") from error
            if asked:
                demand_restores(denoiser, told.size, source)
            elif not layout.sha256 or _sha256(path) != layout.sha256:
                raise BadCheckpoint(
                    f"{path} has the names of {layout.name}, and is not known by its checksum. The file cannot tell "
                    "its heads, its order of attention and its noise schedule; say those of its training, as in "
                    f"'openai:{path}?{layout.said}' (those of {layout.name})"
                )
            return denoiser
    raise BadCheckpoint(
        f"{path} is neither {' nor '.join(layout.name for layout in PUBLISHED)}, the checkpoints of OpenAI that dualrs "
        f"converts: its {len(state)} tensors have other names"
    )


def _as_said(layout: Layout, settings: str, path: Path) -> Layout:
    """A layout with the settings that are said; order and steps are the layout's by default."""
    said = dict(pair.partition("=")[::2] for pair in settings.split("&"))
    widths = {layout.channels * layout.multipliers[level] for level in (*layout.attention, -1)}
    try:
        if set(said) - set(SETTINGS) or "schedule" not in said or ("heads" in said) == ("head_width" in said):
            raise ValueError("heads or head_width, and schedule, are needed; order and steps may be added")
        if "heads" in said and (len(widths) > 1 or min(widths) % int(said["heads"])):
            raise ValueError(f"attention over {sorted(widths)} channels needs head_width, or another number of heads")
        width = int(said["head_width"]) if "head_width" in said else min(widths) // int(said["heads"])
        if width < 1 or any(channels % width for channels in widths):
            raise ValueError(f"heads of {width} channels do not divide {sorted(widths)}")
        steps = int(said.get("steps", layout.schedule.num_train_timesteps))
        scale = 1000 / steps  # OpenAI's: of the betas, where they are linear, and of the timesteps
        betas = {"cosine": (1e-4, 0.02), "linear": (1e-4 * scale, 0.02 * scale)}[said["schedule"]]
        schedule = NoiseSchedule(steps, _SCHEDULES[said["schedule"]], *betas, timestep_scale=scale)
        thirds = {"heads": False, "thirds": True}[said.get("order", "heads")]
    except (ValueError, KeyError, ZeroDivisionError) as error:
        raise BadCheckpoint(
            f"{path}: the settings {settings!r} are not understood ({error}); write them as in {layout.said}, with "
            "schedule=cosine or linear, order=heads or thirds, and steps=1000 or the like"
        ) from error
    return replace(layout, head_width=width, thirds=thirds, schedule=schedule)


def convert(state: dict[str, Tensor], layout: Layout) -> DiffusionDenoiser:
    """Build the denoiser of a layout from OpenAI's tensors."""
    unet = empty_unet(layout)
    ours = {key: _converted(key, state[theirs], layout) for key, theirs in key_map(layout).items()}
    unet.load_state_dict(ours, assign=True)  # strict about names and shapes
    return DiffusionDenoiser(unet, layout.schedule)


def empty_unet(layout: Layout) -> nn.Module:
    """The network of a layout, without weights (on the meta device)."""
    level_types = [
        ("AttnDownBlock2D", "AttnUpBlock2D")
        if level in layout.attention
        else ("ResnetDownsampleBlock2D", "ResnetUpsampleBlock2D")
        if layout.residual_resampling
        else ("DownBlock2D", "UpBlock2D")
        for level in range(len(layout.multipliers))
    ]
    resampling = "resnet" if layout.residual_resampling else "conv"
    with torch.device("meta"):
        unet: nn.Module = need_diffusers().UNet2DModel(
            sample_size=layout.size,
            in_channels=3,
            out_channels=6,  # the noise, and the variance that we leave
            block_out_channels=tuple(layout.channels * multiplier for multiplier in layout.multipliers),
            down_block_types=tuple(down for down, _ in level_types),
            up_block_types=tuple(up for _, up in reversed(level_types)),
            layers_per_block=layout.blocks,
            downsample_type=resampling,
            upsample_type=resampling,
            attention_head_dim=layout.head_width,
            dropout=layout.dropout,
            norm_num_groups=32,
            attn_norm_num_groups=32,  # else the middle attention has no norm
            norm_eps=1e-5,
            resnet_time_scale_shift="scale_shift",
            flip_sin_to_cos=True,  # the cosines of a timestep come first
            freq_shift=0,
        )
    return unet


@cache
def key_map(layout: Layout) -> dict[str, str]:
    """The name of every tensor of `empty_unet`, and the name of OpenAI's tensor that it comes from."""
    modules = {
        "time_embedding.linear_1": "time_embed.0",
        "time_embedding.linear_2": "time_embed.2",
        "conv_in": "input_blocks.0.0",
        "conv_norm_out": "out.0",
        "conv_out": "out.2",
    }

    def add(ours: str, theirs: str, parts: dict[str, str]) -> None:
        modules.update({f"{ours}.{part}": f"{theirs}.{their_part}" for part, their_part in parts.items()})

    resampling_down = _RESIDUAL if layout.residual_resampling else {"conv": "op"}
    resampling_up = _RESIDUAL if layout.residual_resampling else {"conv": "conv"}
    levels, stride = len(layout.multipliers), layout.blocks + 1
    for level in range(levels):
        for block in range(layout.blocks):
            theirs = f"input_blocks.{1 + level * stride + block}"
            add(f"down_blocks.{level}.resnets.{block}", f"{theirs}.0", _RESIDUAL)
            add(f"down_blocks.{level}.attentions.{block}", f"{theirs}.1", _ATTENTION)
        add(f"down_blocks.{level}.downsamplers.0", f"input_blocks.{(level + 1) * stride}.0", resampling_down)

        up = levels - 1 - level  # diffusers counts levels in the order they are passed
        for block in range(stride):
            theirs = f"output_blocks.{up * stride + block}"
            add(f"up_blocks.{up}.resnets.{block}", f"{theirs}.0", _RESIDUAL)
            add(f"up_blocks.{up}.attentions.{block}", f"{theirs}.1", _ATTENTION)
        place = 2 if level in layout.attention else 1
        add(f"up_blocks.{up}.upsamplers.0", f"output_blocks.{up * stride + layout.blocks}.{place}", resampling_up)
    add("mid_block.resnets.0", "middle_block.0", _RESIDUAL)
    add("mid_block.attentions.0", "middle_block.1", _ATTENTION)
    add("mid_block.resnets.1", "middle_block.2", _RESIDUAL)

    keys = (key.rpartition(".") for key in empty_unet(layout).state_dict())
    return {f"{module}.{leaf}": f"{modules[module]}.{leaf}" for module, _, leaf in keys}


def _converted(key: str, theirs: Tensor, layout: Layout) -> Tensor:
    """The tensor that goes to ``key``; weights may be stored in half precision."""
    tensor = theirs.float()
    module, _, leaf = key.rpartition(".")
    if ".attentions." in module and leaf == "weight" and tensor.ndim == 3:
        tensor = tensor.squeeze(2)  # a convolution of width 1 is a linear layer
    if module.endswith((".to_q", ".to_k", ".to_v")):
        third = "qkv".index(module[-1])
        heads = tensor.reshape(-1, 3, layout.head_width, *tensor.shape[1:])
        tensor = tensor.chunk(3)[third] if layout.thirds else heads[:, third].flatten(0, 1)
    return tensor


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise BadCheckpoint(f"there is no file {path}; docs/paper-checkpoints.md says where OpenAI publishes it")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many kinds: cut short, no archive, a pickle with code
        raise BadCheckpoint(
            f"{path} is cut short or holds more than weights; nothing in it was run; download it again"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise BadCheckpoint(f"{path} holds something other than named tensors; download it again")
    demand_finite(state, path)
    return state


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
