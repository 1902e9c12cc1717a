"""Image classifiers of transformers, from the Hugging Face hub or from a folder.

Enters: the name of a classifier on the Hugging Face hub, or a folder. Leaves: a torch module that takes noisy images
in [0, 1] units and answers logits. What the model's processor does to an image (resize, centre crop, rescale,
normalise) is done inside the module, by differentiable operations that never clip: noise is added before them, so a
radius is in pixels of the image as it was given. Nothing that is loaded here is executed: no remote code, and from
pickles only tensors.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualrs.errors import BadCheckpoint, BadModel, Unreachable, first_line
from dualrs.extras import need
from dualrs.models.noisy import class_names
from dualrs.models.prepare import Preparation
from dualrs.models.trial import demand_finite

LEVELS = 255  # grey levels per unit of pixel value: processors are written for 8-bit images

# Pillow's numbers of the filters that torch computes alike. Torch has a lanczos for the CPU only, no box and no
# hamming, and its nearest takes the other pixel where two are equally near.
RESAMPLING = {2: "bilinear", 3: "bicubic"}

# Of a configuration, what says where it lies and who wrote it, and not what it computes.
_UNSPOKEN = ("_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype")

PURPOSE = "a classifier of the hub"
SECONDS = 5  # that the hub is given to answer

# A processor rounds to 8 bits after each of the two passes of a resize, by half a level, of which a cubic makes up to
# 1.25 times as much in the second: 1.125 levels. What differs by more is another computation.
ROUNDING = 1.25 / LEVELS


class HubClassifier(nn.Module):
    """A classifier of transformers behind the preparation that its processor describes."""

    def __init__(self, prepare: Preparation, network: nn.Module) -> None:
        super().__init__()
        self.prepare = prepare
        self.network = network

    @property
    def classes(self) -> tuple[str, ...]:
        """What the configuration calls its classes."""
        return class_names(self.network)

    def extra_repr(self) -> str:
        """The configuration, for the fingerprint: the layers as printed do not show all of it, heads for one."""
        config: Any = self.network.config
        return json.dumps(
            {k: v for k, v in config.to_dict().items() if k not in _UNSPOKEN}, sort_keys=True, default=str
        )

    def forward(self, noisy: Tensor) -> Tensor:
        """Logits of a batch, shape (batch, classes)."""
        prepared = self.prepare(noisy)
        try:
            logits: Tensor = self.network(prepared).logits
        except ValueError as error:  # how transformers says that a network takes another size
            raise BadModel(
                f"{type(self.network).__name__} does not take the {tuple(prepared.shape[2:])} images that its "
                f"processor makes of {tuple(noisy.shape[2:])}: {first_line(error)}"
            ) from error
        return logits


def load_classifier(source: str | Path) -> nn.Module:
    """Load an image classifier of transformers: a folder made by ``save_pretrained``, or an id on the hub.

    A folder is read without any network. An id is looked up once, and taken from the local cache if the hub does not
    answer. Safetensors are preferred to pickles.
    """
    transformers = need("transformers", "hub", PURPOSE)
    need("PIL", "hub", PURPOSE)  # transformers has no processor without it
    folder = _folder(source)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **local)
        network, report = transformers.AutoModelForImageClassification.from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, **local
        )
        processor = transformers.AutoImageProcessor.from_pretrained(folder, config=config, backend="pil", **local)
    except Exception as error:  # whatever transformers, safetensors, json or pickle make of a bad folder
        raise BadCheckpoint(
            f"{source} is not an image classifier that transformers can load ({first_line(error)}); save it again "
            "with save_pretrained, its processor too"
        ) from error
    for fault in ("missing", "unexpected"):
        keys = sorted(report[f"{fault}_keys"])
        if keys:
            raise BadCheckpoint(
                f"the weights of {source} are not those of {type(network).__name__}: {len(keys)} {fault}, "
                f"such as {keys[0]}; give a checkpoint that was trained as a classifier"
            )
    demand_finite(dict(network.named_parameters()), source)
    channels = getattr(config, "num_channels", 3)
    return HubClassifier(_preparation(processor, channels, source), network).eval()


def _folder(source: str | Path) -> Path:
    """The folder that a source names, or the one in the local cache that holds the hub's files."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(source, Path) or folder.exists():
        raise BadCheckpoint(f"{source} is not a folder; give the one that save_pretrained wrote")
    hub = need("huggingface_hub", "hub", PURPOSE)
    refused: Exception | None = None
    try:
        # One question with a time limit: the downloads below have none, and retry for half a minute on each file.
        hub.HfApi().model_info(source, timeout=SECONDS)
    except need("huggingface_hub.errors", "hub", PURPOSE).HFValidationError as error:
        raise BadCheckpoint(f"{source} is neither a folder nor an id of the hub, owner/name") from error
    except Exception as error:  # the connection, or what the hub answered; the cache may still have it
        refused = error
    try:
        where = {"repo_id": source, "local_files_only": refused is not None}
        folder = Path(hub.snapshot_download(**where, allow_patterns=["*.json", "model*.safetensors"]))
        if not any(folder.glob("model*.safetensors")):
            hub.snapshot_download(**where, allow_patterns=["pytorch_model*.bin"])
    except Exception as error:
        raise Unreachable(
            f"cannot get {source} from the hub ({first_line(refused or error)}); check the name and the connection, "
            "or download its files elsewhere and give their folder"
        ) from (refused or error)
    return folder


def _preparation(processor: Any, channels: int, source: str | Path) -> Preparation:
    """What a processor does, as a module; refused unless the two make the same of a probe."""
    # Noise shows any difference; of middling contrast, because a processor clips what a cubic overshoots.
    probe = torch.randint(64, 192, (channels, 48, 64), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    try:
        prepare = _described(processor, channels)
        ours = prepare(probe[None] / LEVELS)
        theirs = processor(probe, return_tensors="pt")["pixel_values"]
        if ours.shape != theirs.shape or ((ours - theirs).abs() * prepare.std).max() > ROUNDING:
            raise ValueError("it does more than resize, crop, rescale and normalise")
    except Exception as error:  # a processor may lack any of the settings and refuse any image
        raise BadModel(
            f"the {type(processor).__name__} of {source} does not fit into a module: {first_line(error)}; load the "
            "network with transformers and wrap it in a module of your own that prepares the images"
        ) from error
    return prepare


def _described(processor: Any, channels: int) -> Preparation:
    """The preparation that a processor's settings describe."""
    size = _size(processor.size) if processor.do_resize else None
    crop = None
    if getattr(processor, "do_center_crop", False):
        sides = dict(processor.crop_size)
        crop = (int(sides["height"]), int(sides["width"]))
    crop_pct = getattr(processor, "crop_pct", None)
    if crop_pct and isinstance(size, int):  # of ConvNeXt: the size is that of a crop, and from 384 on it warps
        crop = (size, size)
        size = int(size / crop_pct) if size < 384 else crop
    scale = LEVELS * (processor.rescale_factor if processor.do_rescale else 1)
    mean, std = (processor.image_mean, processor.image_std) if processor.do_normalize else (0.0, 1.0)
    return Preparation(  # (scale x - mean) / std
        [value / scale for value in _per_channel(mean, channels)],
        [value / scale for value in _per_channel(std, channels)],
        size=size,
        crop=crop,
        resampling=_filter(processor.resample) if processor.do_resize else "bilinear",
    )


def _size(given: Any) -> int | tuple[int, int]:
    """A processor's size: (height, width), or its shorter edge alone."""
    match {name: int(value) for name, value in dict(given).items() if value}:
        case {"height": height, "width": width, **others} if not others:
            return height, width
        case {"shortest_edge": edge, **others} if not others:
            return edge
        case sizes:
            raise ValueError(f"sizes given by {', '.join(sizes)} are not known")


def _filter(number: int) -> str:
    if number not in RESAMPLING:
        raise ValueError(f"it resizes with filter {number} of Pillow, and torch has only those of {RESAMPLING}")
    return RESAMPLING[number]


def _per_channel(value: Any, channels: int) -> list[float]:
    return [float(value)] * channels if isinstance(value, int | float) else [float(number) for number in value]
