"""Diffusion models as denoisers: one step from the noisy image to a clean estimate. Only this file knows timesteps.

Enters: noisy images in [0, 1] units and the sigma they carry; a U-Net that diffusers saved. Leaves: clean estimates
within [0, 1]. Section 2 of the paper, diffusion denoised smoothing: the model is asked once, at the first timestep
whose noise is at least that of the image, which in its own units, [-1, 1], is 2 sigma. It adds no noise.
"""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from dualrs.errors import BadCheckpoint, BadImage, BadModel, BadSetting, Unreachable, first_line
from dualrs.extras import need
from dualrs.models.denoise import Sigma, per_image
from dualrs.models.trial import demand_finite

BETA_SCHEDULES = ("linear", "scaled_linear", "squaredcos_cap_v2")
PREDICTION_TYPES = ("epsilon", "v_prediction", "sample")

_SCHEDULER_FILE = "scheduler_config.json"
_HUB_SECONDS = 10.0  # to wait for the hub's first answer
_HUB_FILES = [
    f"{folder}{name}"
    for folder in ("", "unet/", "scheduler/")
    for name in ("config.json", _SCHEDULER_FILE, "diffusion_pytorch_model*.safetensors", "*.safetensors.index.json")
]


def need_diffusers() -> ModuleType:
    """The package diffusers, imported when a diffusion model is asked for."""
    return need("diffusers", "diffusion", "a diffusion denoiser")


@dataclass(frozen=True)
class NoiseSchedule:
    """How noisy the images of each timestep were in training, and what the model learned to predict of them.

    Fields are named as in diffusers' scheduler_config.json. ``timestep_scale`` is ours: what a timestep is
    multiplied by before the network sees it.
    """

    num_train_timesteps: int = 1000
    beta_schedule: str = "linear"
    beta_start: float = 0.0001
    beta_end: float = 0.02
    prediction_type: str = "epsilon"
    timestep_scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("beta_schedule", self.beta_schedule, BETA_SCHEDULES),
            ("prediction_type", self.prediction_type, PREDICTION_TYPES),
        ):
            if value not in known:
                raise BadSetting(f"{name} must be one of {', '.join(known)}; got {value!r}")
        if not (self.num_train_timesteps >= 1 and 0 < self.beta_start <= self.beta_end < 1 and self.timestep_scale > 0):
            raise BadSetting(f"a schedule needs timesteps, and betas that rise within (0, 1); got {self}")

    def alphas_cumprod(self) -> Tensor:
        """The share of the image in the variance at each timestep, from nearly 1 down to nearly 0, in float64."""
        scheduler = need_diffusers().DDPMScheduler(
            num_train_timesteps=self.num_train_timesteps,
            beta_schedule=self.beta_schedule,
            beta_start=self.beta_start,
            beta_end=self.beta_end,
        )
        betas: Tensor = scheduler.betas.double()  # a product of thousands drifts in float32
        return torch.cumprod(1 - betas, dim=0)


class DiffusionDenoiser(nn.Module):
    """A diffusers ``UNet2DModel`` as a denoiser. In one step, a variance that it also learned plays no part."""

    ratios: Tensor  # noise over signal at each timestep, rising

    def __init__(self, unet: nn.Module, schedule: NoiseSchedule) -> None:
        super().__init__()
        config: Any = unet.config
        if config.out_channels not in (config.in_channels, 2 * config.in_channels):
            raise BadModel(
                f"a denoiser answers with as many channels as it takes, or twice as many if it learned a variance; "
                f"this network takes {config.in_channels} and answers with {config.out_channels}"
            )
        if config.class_embed_type is not None or config.num_class_embeds is not None:
            raise BadModel("this network must be told the class of each image; take one that is not class-conditional")
        self.unet = unet
        self.schedule = schedule
        self.channels = int(config.in_channels)
        self.multiple = 2 ** (len(config.block_out_channels) - 1)  # of which image sides must be one
        kept = schedule.alphas_cumprod()
        self.register_buffer("ratios", ((1 - kept) / kept).sqrt().float())

    def extra_repr(self) -> str:
        """Schedule and settings, for the fingerprint: the layers as printed do not show all of them, heads for one."""
        config: Any = self.unet.config
        settings = {name: value for name, value in config.items() if not name.startswith("_")}
        return f"{self.schedule}, {json.dumps(settings, sort_keys=True)}"

    def forward(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """Clean estimates, within [0, 1]."""
        clean, _ = self.estimate(noisy * 2 - 1, self.first_step(noisy, sigma))
        return (clean + 1) / 2

    def first_step(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """The timestep of noisy images: one, or one each."""
        channels, height, width = noisy.shape[1:]
        if channels != self.channels or height % self.multiple or width % self.multiple:
            raise BadImage(
                f"this diffusion model takes images of {self.channels} channels with sides that are multiples of "
                f"{self.multiple}; got {channels} x {height} x {width}"
            )
        return self.timestep(per_image(sigma, noisy).flatten())

    def estimate(self, image: Tensor, step: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the model takes for the clean image, in its own units, and the variance that it learned, if it did.

        The image is given divided by the signal that the timestep leaves of it. A variance is a number about -1 to 1,
        which stands for the least and the most that a step can have.
        """
        ratio = self.ratios[step].view(-1, 1, 1, 1)
        signal = ratio.square().add(1).rsqrt()  # sqrt(alpha_bar); signal * ratio is sqrt(1 - alpha_bar)
        scale = self.schedule.timestep_scale
        answer = self.unet(signal * image, step if scale == 1 else step * scale).sample
        predicted: Tensor = answer[:, : self.channels].to(image)
        match self.schedule.prediction_type:
            case "epsilon":
                clean = image - ratio * predicted
            case "v_prediction":
                clean = signal.square() * image - signal * ratio * predicted
            case _:
                clean = predicted
        learned = answer[:, self.channels :].to(image)
        return clean.clamp(-1, 1), learned if learned.shape[1] else None

    def timestep(self, sigma: Tensor) -> Tensor:
        """The first timestep whose noise over signal is at least 2 sigma."""
        step = torch.searchsorted(self.ratios, 2 * sigma)
        if bool((step == len(self.ratios)).any()):
            raise BadSetting(
                f"sigma {float(sigma.max()):.6g} is beyond this diffusion model, whose schedule ends at sigma "
                f"{float(self.ratios[-1]) / 2:.6g}; take a smaller sigma or another denoiser"
            )
        return step

    def save(self, folder: str | Path) -> None:
        """Write the folders unet/ and scheduler/, which `load_diffusers` reads."""
        unet: Any = self.unet
        scheduler = {"_class_name": "DDPMScheduler", **asdict(self.schedule)}
        try:
            (Path(folder) / "scheduler").mkdir(parents=True, exist_ok=True)
            unet.save_pretrained(Path(folder) / "unet")
            (Path(folder) / "scheduler" / _SCHEDULER_FILE).write_text(json.dumps(scheduler, indent=2) + "\n")
        except OSError as error:
            raise BadCheckpoint(f"cannot save the denoiser in {folder}: {error}") from error


def load_diffusers(source: str | Path) -> DiffusionDenoiser:
    """Load a U-Net and the schedule beside it from a folder that diffusers saved, or from the hub by its id.

    The folder is a pipeline's (unet/ and scheduler/), or the U-Net's own with scheduler_config.json in it. Without
    a schedule it is refused: a wrong one would go unnoticed. Weights are read from safetensors only, never from a
    pickle; a folder is read without any network.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        if isinstance(source, Path) or folder.exists() or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", source):
            raise BadCheckpoint(
                f"there is no folder {source}; give one that diffusers saved, or a hub id such as owner/name"
            )
        folder = _download(source)
    unet_folder = folder / "unet" if (folder / "unet").is_dir() else folder
    schedule = _read_schedule(unet_folder)
    try:
        return DiffusionDenoiser(_read_unet(unet_folder), schedule).eval()
    except BadModel as error:
        raise BadCheckpoint(f"{unet_folder} is no denoiser: {error}") from error


def _read_schedule(unet_folder: Path) -> NoiseSchedule:
    places = unet_folder / _SCHEDULER_FILE, unet_folder.parent / "scheduler" / _SCHEDULER_FILE
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise BadCheckpoint(
            f"no schedule lies beside the U-Net in {unet_folder}; put the {_SCHEDULER_FILE} it was trained with there"
        )
    config = _read_json(path)
    if "beta_schedule" not in config or config.get("trained_betas") or config.get("rescale_betas_zero_snr"):
        raise BadCheckpoint(
            f"{path} does not describe its schedule by beta_schedule, beta_start and beta_end; dualrs reads no other"
        )
    try:
        return NoiseSchedule(**{f.name: config[f.name] for f in fields(NoiseSchedule) if f.name in config})
    except (TypeError, ValueError) as error:
        raise BadCheckpoint(f"{path} is not a schedule that dualrs reads: {error}") from error


def _read_unet(folder: Path) -> nn.Module:
    kind = _read_json(folder / "config.json").get("_class_name")
    if kind != "UNet2DModel":
        raise BadCheckpoint(f"{folder} holds a {kind}, not a UNet2DModel")
    if not any(folder.glob("*.safetensors")):
        raise BadCheckpoint(
            f"{folder} has no weights in safetensors; dualrs opens no pickle (.bin), so let diffusers save it anew "
            "with safe_serialization=True, or download the safetensors"
        )
    diffusers = need_diffusers()  # not below, where its absence would be taken for a fault of the weights
    try:
        unet, found = diffusers.UNet2DModel.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, torch_dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # of many kinds: cut short, not safetensors, other shapes, a config that builds nothing
        raise BadCheckpoint(
            f"the weights in {folder} cannot be read: they are cut short, or not those of its config.json"
        ) from error
    astray = [*found["missing_keys"], *found["unexpected_keys"], *found["mismatched_keys"]]
    if astray:
        raise BadCheckpoint(
            f"the weights in {folder} are not those of its config.json: {len(astray)} tensors are missing, too many "
            f"or of another shape, the first of them {astray[0]}"
        )
    network: nn.Module = unet
    demand_finite(dict(network.named_parameters()), folder)
    return network


def _read_json(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadCheckpoint(f"{path} is missing or not JSON; give a folder that diffusers saved ({error})") from error
    if not isinstance(config, dict):
        raise BadCheckpoint(f"{path} is not a table of settings; give a folder that diffusers saved")
    return config


def _download(name: str) -> Path:
    """A folder of the hub's cache with what a denoiser needs; if the hub does not answer, what was cached before."""
    hub = need("huggingface_hub", "diffusion", "a denoiser from the hub")
    try:
        revision = hub.HfApi().model_info(name, timeout=_HUB_SECONDS).sha  # the download itself would wait for long
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=_HUB_FILES))
    except Exception as error:  # of many kinds: no network, no such model, no right to it
        try:
            return Path(hub.snapshot_download(name, allow_patterns=_HUB_FILES, local_files_only=True))
        except OSError:
            raise Unreachable(
                f"there is no folder {name} here, and the hub gave no model of that name ({first_line(error)}); "
                "download it where the hub can be reached, and give its folder"
            ) from error
