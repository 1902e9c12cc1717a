"""Diffusion models as denoisers: the arithmetic of one step, files that are good, and files that are not."""

import json
import math
import os
import pickle
import shutil
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dualrs import Smoothed
from dualrs.errors import BadCheckpoint, BadImage, BadModel, BadSetting, MissingExtra, Unreachable
from dualrs.models import diffusion
from dualrs.models.denoise import Denoised
from dualrs.models.diffusion import DiffusionDenoiser, NoiseSchedule, load_diffusers
from dualrs.models.noisy import NoisyModel

COSINE = NoiseSchedule(num_train_timesteps=4000, beta_schedule="squaredcos_cap_v2", timestep_scale=0.25)
SCHEDULES = {
    "linear": NoiseSchedule(),
    "scaled_linear": NoiseSchedule(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012),
    "cosine": COSINE,
}


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


CLEAN = uniform(3, 3, 8, 8)


class Config(dict):
    """As diffusers has it: settings by key or by attribute."""

    __getattr__ = dict.__getitem__


class Scripted(nn.Module):
    """Stands for a U-Net: records what it is given, and answers what it is told to."""

    def __init__(self, respond, **config):
        super().__init__()
        self.config = Config(
            in_channels=3, out_channels=3, class_embed_type=None, num_class_embeds=None, block_out_channels=(8, 16)
        )
        self.config.update(config)
        self.respond = respond

    def forward(self, x, timesteps):
        self.seen = x, timesteps
        return SimpleNamespace(sample=self.respond(x))


def small_unet(attention_head_dim=8, **settings):
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=attention_head_dim,
        **settings,
    )


# The schedule


def test_cosine_schedule_is_the_squared_cosine():
    """Steps are capped where the closed form nears 0; before that, the products telescope."""
    angle = (np.arange(1, 3801) / 4000 + 0.008) / 1.008 * math.pi / 2
    expected = np.cos(angle) ** 2 / math.cos(0.008 / 1.008 * math.pi / 2) ** 2
    np.testing.assert_allclose(COSINE.alphas_cumprod()[:3800], expected, rtol=1e-6)


def test_linear_schedules_are_products_of_betas():
    expected = np.cumprod(1 - np.linspace(0.0001, 0.02, 1000))
    np.testing.assert_allclose(SCHEDULES["linear"].alphas_cumprod(), expected, rtol=1e-6)
    expected = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2)
    np.testing.assert_allclose(SCHEDULES["scaled_linear"].alphas_cumprod(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta_schedule": "quadratic"}, "beta_schedule must be one of linear, .* got 'quadratic'"),
        ({"prediction_type": "flow"}, "prediction_type must be one of epsilon, .* got 'flow'"),
        ({"num_train_timesteps": 0}, "needs timesteps"),
        ({"beta_start": 0.0}, r"betas that rise within \(0, 1\)"),
        ({"beta_start": 0.5}, "betas that rise"),
        ({"beta_end": 1.0}, "betas that rise"),
        ({"timestep_scale": 0.0}, "needs timesteps"),
        ({"beta_end": math.nan}, "betas that rise"),
    ],
    ids=str,
)
def test_schedule_that_is_none_is_refused(change, message):
    with pytest.raises(BadSetting, match=message):
        replace(NoiseSchedule(), **change)


# One step


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("sigma", [0.0, 0.01, 0.12, 0.25, 0.5, 1.0, 2.0])
def test_timestep_is_the_first_with_at_least_the_noise_of_the_image(name, sigma):
    denoiser = DiffusionDenoiser(Scripted(torch.zeros_like), SCHEDULES[name])
    kept = SCHEDULES[name].alphas_cumprod().numpy()
    step = 0
    while math.sqrt((1 - kept[step]) / kept[step]) < 2 * sigma:
        step += 1
    assert int(denoiser.timestep(torch.tensor([sigma]))) == step


@pytest.mark.parametrize("name", SCHEDULES)
def test_network_sees_the_image_in_its_own_units_at_its_own_timestep(name):
    network = Scripted(torch.zeros_like)
    denoiser = DiffusionDenoiser(network, SCHEDULES[name])
    noisy = CLEAN + 0.5 * normal(3, 3, 8, 8)
    denoiser(noisy, 0.5)
    x, timesteps = network.seen
    step = int(denoiser.timestep(torch.tensor([0.5])))
    assert timesteps.expand(3).tolist() == [step * SCHEDULES[name].timestep_scale] * 3
    assert timesteps.is_floating_point() == (SCHEDULES[name].timestep_scale != 1)
    kept = float(SCHEDULES[name].alphas_cumprod()[step])
    torch.testing.assert_close(x, math.sqrt(kept) * (noisy * 2 - 1))


def perfect(clean, prediction_type, schedule, steps):
    """What a network would say that knew the clean image; ``steps`` has one timestep per image."""
    kept = schedule.alphas_cumprod()[steps].view(-1, 1, 1, 1).float()
    target = clean * 2 - 1

    def respond(x):
        noise = (x - kept.sqrt() * target) / (1 - kept).sqrt()
        v = kept.sqrt() * noise - (1 - kept).sqrt() * target
        return {"epsilon": noise, "v_prediction": v, "sample": target}[prediction_type]

    return respond


@pytest.mark.parametrize("prediction_type", diffusion.PREDICTION_TYPES)
@pytest.mark.parametrize("sigma", [0.25, torch.tensor([0.12, 0.5, 1.0])], ids=["one sigma", "a sigma per image"])
def test_perfect_network_gives_the_clean_image_back(prediction_type, sigma):
    schedule = replace(COSINE, prediction_type=prediction_type)
    sigmas = torch.as_tensor(sigma).expand(3)
    steps = DiffusionDenoiser(Scripted(torch.zeros_like), schedule).timestep(sigmas)
    denoiser = DiffusionDenoiser(Scripted(perfect(CLEAN, prediction_type, schedule, steps)), schedule)
    noisy = CLEAN + sigmas.view(-1, 1, 1, 1) * normal(3, 3, 8, 8)
    torch.testing.assert_close(denoiser(noisy, sigma), CLEAN, atol=1e-5, rtol=0)


def test_noise_is_removed_at_the_level_of_the_schedule():
    """Which lies a little above 2 sigma, because timesteps are whole numbers."""
    denoiser = DiffusionDenoiser(Scripted(lambda x: torch.full_like(x, 0.5)), NoiseSchedule())
    ratio = float(denoiser.ratios[145])
    assert 0.5 < ratio < 0.51
    grey = torch.full((1, 3, 8, 8), 0.6)
    torch.testing.assert_close(denoiser(grey, 0.25), grey - ratio * 0.5 / 2)


@pytest.mark.parametrize("prediction_type", diffusion.PREDICTION_TYPES)
def test_estimate_stays_within_the_pixel_range(prediction_type):
    schedule = NoiseSchedule(prediction_type=prediction_type)
    clean = DiffusionDenoiser(Scripted(lambda x: 100 * x), schedule)(CLEAN + normal(3, 3, 8, 8), 1.0)
    assert clean.min() == 0
    assert clean.max() == 1


def test_learned_variance_is_ignored():
    plain = DiffusionDenoiser(Scripted(lambda x: x / 2), NoiseSchedule())
    learned = DiffusionDenoiser(Scripted(lambda x: torch.cat([x / 2, 1e9 * x], dim=1), out_channels=6), NoiseSchedule())
    noisy = CLEAN + 0.25 * normal(3, 3, 8, 8)
    assert torch.equal(plain(noisy, 0.25), learned(noisy, 0.25))


def test_no_noise_is_added():
    denoiser = DiffusionDenoiser(small_unet(), NoiseSchedule()).eval()
    state = torch.get_rng_state()
    with torch.no_grad():
        first, second = denoiser(CLEAN, 0.5), denoiser(CLEAN, 0.5)
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_each_image_is_denoised_by_itself():
    denoiser = DiffusionDenoiser(small_unet(), COSINE).eval()
    sigmas = torch.tensor([0.12, 0.5, 1.0])
    with torch.no_grad():
        together = denoiser(CLEAN, sigmas)
        for i, sigma in enumerate(sigmas.tolist()):
            torch.testing.assert_close(together[i : i + 1], denoiser(CLEAN[i : i + 1], sigma))


@pytest.mark.parametrize("sigma", [100.0, math.inf, math.nan, torch.tensor([0.5, 100.0, 0.5])], ids=str)
def test_sigma_beyond_the_schedule_is_refused(sigma):
    with pytest.raises(BadSetting, match=r"beyond this diffusion model, whose schedule ends at sigma 78\.\d+"):
        DiffusionDenoiser(Scripted(torch.zeros_like), NoiseSchedule())(CLEAN, sigma)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 7, 8), (3, 8, 7)], ids=str)
def test_image_that_does_not_fit_is_refused(shape):
    denoiser = DiffusionDenoiser(small_unet(), NoiseSchedule())
    with pytest.raises(
        BadImage, match="3 channels with sides that are multiples of 2; got {} x {} x {}".format(*shape)
    ):
        denoiser(torch.zeros(2, *shape), 0.5)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Scripted(torch.zeros_like, out_channels=4), "takes 3 and answers with 4"),
        (Scripted(torch.zeros_like, num_class_embeds=10), "class-conditional"),
        (Scripted(torch.zeros_like, class_embed_type="timestep"), "class-conditional"),
    ],
    ids=["channels", "classes", "class embedding"],
)
def test_network_that_is_no_denoiser_is_refused(network, message):
    with pytest.raises(BadModel, match=message):
        DiffusionDenoiser(network, NoiseSchedule())


# As a part of a smoothed model


class Brightness(nn.Module):
    def forward(self, x):
        mean = x.mean(dim=(1, 2, 3))
        return torch.stack([1 - mean, mean], dim=1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_denoised_classifier_can_be_smoothed(dtype):
    """A network that sees no noise leaves the image, and the bright image is bright."""
    denoiser = DiffusionDenoiser(Scripted(torch.zeros_like), NoiseSchedule())
    model = Smoothed(Denoised(denoiser, Brightness()).eval(), 0.25, batch_size=32, dtype=dtype)
    assert model.predict(np.full((3, 8, 8), 230, dtype=np.uint8), n=50).prediction == 1


def test_estimate_under_autocast_is_float32():
    denoiser = DiffusionDenoiser(small_unet(), NoiseSchedule()).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        half = denoiser(CLEAN, 0.25)
    assert half.dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(half, denoiser(CLEAN, 0.25), atol=0.05, rtol=0)


@pytest.mark.parametrize(
    "change", [{"timestep_scale": 0.5}, {"prediction_type": "sample"}, {"beta_end": 0.021}], ids=str
)
def test_fingerprint_covers_the_schedule(change):
    assert fingerprint() == fingerprint()
    assert fingerprint(replace(NoiseSchedule(), **change)) != fingerprint()


def test_fingerprint_covers_the_number_of_heads():
    """Which neither the weights nor the layers as printed show."""
    assert fingerprint(attention_head_dim=4) != fingerprint()


def fingerprint(schedule=SCHEDULES["linear"], **settings):
    denoiser = DiffusionDenoiser(small_unet(**settings), schedule)
    return NoisyModel("model", Denoised(denoiser, Brightness()).eval()).fingerprint


# Folders


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*arguments, **settings):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def saved(tmp_path):
    """A denoiser and the folder it was saved in."""
    denoiser = DiffusionDenoiser(small_unet(out_channels=6), replace(COSINE, prediction_type="v_prediction")).eval()
    denoiser.save(tmp_path / "saved")
    return denoiser, tmp_path / "saved"


def weights_of(folder):
    return folder / "unet" / "diffusion_pytorch_model.safetensors"


def assert_same(denoiser, other):
    with torch.no_grad():
        assert torch.equal(other(CLEAN, 0.5), denoiser(CLEAN, 0.5))


@pytest.mark.parametrize("kind", [str, Path])
def test_saved_denoiser_is_loaded_as_it_was(saved, no_network, kind):
    denoiser, folder = saved
    again = load_diffusers(kind(folder))
    assert again.schedule == denoiser.schedule
    assert not any(part.training for part in again.modules())
    assert NoisyModel("a", again).fingerprint == NoisyModel("b", denoiser).fingerprint
    assert_same(denoiser, again)


def test_unet_folder_is_enough_if_a_schedule_lies_in_it_or_beside_it(saved, no_network, tmp_path):
    denoiser, folder = saved
    assert_same(denoiser, load_diffusers(folder / "unet"))
    shutil.move(folder / "scheduler" / "scheduler_config.json", folder / "unet")
    shutil.copytree(folder / "unet", tmp_path / "flat")
    assert_same(denoiser, load_diffusers(tmp_path / "flat"))


@pytest.mark.parametrize("scheduler", ["DDPMScheduler", "DDIMScheduler", "PNDMScheduler"])
def test_pipeline_saved_by_diffusers_is_loaded(scheduler, no_network, tmp_path):
    import diffusers

    settings = {"num_train_timesteps": 500, "beta_schedule": "scaled_linear", "beta_start": 0.001, "beta_end": 0.01}
    made = getattr(diffusers, scheduler)(**settings)
    unet = small_unet().eval()
    diffusers.DDPMPipeline(unet, made).save_pretrained(tmp_path)
    denoiser = load_diffusers(tmp_path)
    assert denoiser.schedule == NoiseSchedule(**settings)
    torch.testing.assert_close(denoiser.schedule.alphas_cumprod().float(), made.alphas_cumprod, rtol=1e-4, atol=0)
    assert_same(DiffusionDenoiser(unet, denoiser.schedule), denoiser)


def test_weights_under_the_old_names_of_attention_are_loaded(saved, no_network):
    denoiser, folder = saved
    old = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    state = load_file(weights_of(folder))
    for new, name in old.items():
        state = {key.replace(new, name): value for key, value in state.items()}
    save_file(state, weights_of(folder))
    assert_same(denoiser, load_diffusers(folder))


def test_weights_in_half_precision_become_float32(saved, no_network):
    _, folder = saved
    save_file({key: value.half() for key, value in load_file(weights_of(folder)).items()}, weights_of(folder))
    assert {p.dtype for p in load_diffusers(folder).parameters()} == {torch.float32}


def cut_short(folder):
    os.truncate(weights_of(folder), weights_of(folder).stat().st_size // 2)


def emptied(folder):
    weights_of(folder).write_bytes(b"")


def changed_weights(change):
    def damage(folder):
        save_file(change(load_file(weights_of(folder))), weights_of(folder))

    return damage


def changed_json(name, change):
    def damage(folder):
        path = folder / name
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return damage


def written(name, text):
    return lambda folder: (folder / name).write_text(text)


def removed(name):
    return lambda folder: (folder / name).unlink()


UNET, SCHEDULER = "unet/config.json", "scheduler/scheduler_config.json"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(cut_short, "cut short, or not those", id="weights cut short"),
        pytest.param(emptied, "cut short, or not those", id="empty weights"),
        pytest.param(written("unet/diffusion_pytorch_model.safetensors", "<html>" * 9), "cut short", id="not weights"),
        pytest.param(
            changed_weights(lambda s: {k: v for k, v in s.items() if k != "conv_in.bias"}),
            "1 tensors are missing, .* conv_in.bias",
            id="a tensor missing",
        ),
        pytest.param(
            changed_weights(lambda s: {**s, "more": torch.zeros(1)}), "1 tensors .* more", id="a tensor too many"
        ),
        pytest.param(
            changed_weights(lambda s: {**s, "conv_in.bias": torch.zeros(2)}), "or not those", id="another shape"
        ),
        pytest.param(
            changed_json(UNET, lambda c: {**c, "block_out_channels": [16, 32]}), "or not those", id="another config"
        ),
        pytest.param(
            changed_json(UNET, lambda c: {**c, "down_block_types": ["NoSuchBlock"] * 2}), "or not those", id="no block"
        ),
        pytest.param(
            changed_json(UNET, lambda c: {**c, "_class_name": "UNet2DConditionModel"}),
            "UNet2DConditionModel, not a UNet2DModel",
            id="another class",
        ),
        pytest.param(removed("unet/diffusion_pytorch_model.safetensors"), "no weights in safetensors", id="no weights"),
        pytest.param(removed(UNET), "config.json is missing or not JSON", id="no config"),
        pytest.param(written(UNET, "{"), "config.json is missing or not JSON", id="half a config"),
        pytest.param(written(UNET, "[]"), "not a table of settings", id="a list for a config"),
        pytest.param(removed(SCHEDULER), "no schedule lies beside the U-Net", id="no schedule"),
        pytest.param(written(SCHEDULER, "nonsense"), "missing or not JSON", id="a schedule that is not JSON"),
        pytest.param(written(SCHEDULER, "{}"), "does not describe its schedule", id="an empty schedule"),
        pytest.param(
            changed_json(SCHEDULER, lambda c: {**c, "trained_betas": [0.1]}), "does not describe", id="betas in a list"
        ),
        pytest.param(
            changed_json(SCHEDULER, lambda c: {**c, "rescale_betas_zero_snr": True}), "does not describe", id="zero SNR"
        ),
        pytest.param(
            changed_json(SCHEDULER, lambda c: {**c, "beta_schedule": "sigmoid"}), "got 'sigmoid'", id="another schedule"
        ),
        pytest.param(
            changed_json(SCHEDULER, lambda c: {**c, "beta_end": "0.02"}),
            "not a schedule that dualrs",
            id="text for a beta",
        ),
    ],
)
def test_damaged_folder_is_refused(saved, damage, message, no_network):
    _, folder = saved
    damage(folder)
    with pytest.raises(BadCheckpoint, match=message):
        load_diffusers(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"out_channels": 4}, "answers with 4"), ({"num_class_embeds": 10}, "class-conditional")],
    ids=["channels", "classes"],
)
def test_saved_network_that_is_no_denoiser_is_refused(saved, settings, message, no_network):
    _, folder = saved
    small_unet(**settings).save_pretrained(folder / "unet")
    with pytest.raises(BadCheckpoint, match=f"is no denoiser: .*{message}"):
        load_diffusers(folder)


class Code:
    """Writes a file if it is ever unpickled."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


@pytest.mark.parametrize("with_safetensors", [True, False])
def test_pickle_is_never_opened(saved, with_safetensors, no_network, tmp_path):
    denoiser, folder = saved
    pickled, witness = folder / "unet" / "diffusion_pytorch_model.bin", tmp_path / "ran"
    pickled.write_bytes(pickle.dumps(Code(witness)))
    if with_safetensors:
        assert_same(denoiser, load_diffusers(folder))
    else:
        weights_of(folder).unlink()
        with pytest.raises(BadCheckpoint, match="dualrs opens no pickle"):
            load_diffusers(folder)
    assert not witness.exists()
    pickle.loads(pickled.read_bytes())
    assert witness.exists()  # the trap works


def test_weights_index_that_leads_to_a_pickle_runs_nothing(saved, no_network, tmp_path):
    """Weights in several files have an index, and an index can name any file."""
    _, folder = saved
    witness = tmp_path / "ran"
    keys = load_file(weights_of(folder))
    weights_of(folder).rename(folder / "unet" / "other.safetensors")
    (folder / "unet" / "code.bin").write_bytes(pickle.dumps(Code(witness)))
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(keys, "code.bin")}
    (folder / "unet" / "diffusion_pytorch_model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadCheckpoint, match="cut short, or not those"):
        load_diffusers(folder)
    assert not witness.exists()


@pytest.mark.parametrize(
    "source",
    ["nowhere", "./near/by", "far/away/from/here", "/not/there", "~/home", Path("owner/name")],
    ids=repr,
)
def test_missing_folder_is_refused_without_asking_the_hub(source, no_network):
    with pytest.raises(BadCheckpoint, match="there is no folder"):
        load_diffusers(source)


def test_file_in_place_of_a_folder_is_refused(saved, no_network):
    _, folder = saved
    with pytest.raises(BadCheckpoint, match="there is no folder"):
        load_diffusers(weights_of(folder))


def test_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadCheckpoint, match="cannot save the denoiser"):
        DiffusionDenoiser(small_unet(), NoiseSchedule()).save(tmp_path / "file")


def test_missing_package_is_named(monkeypatch, saved):
    _, folder = saved
    monkeypatch.setitem(sys.modules, "diffusers", None)
    for asked in (NoiseSchedule().alphas_cumprod, lambda: load_diffusers(folder)):
        with pytest.raises(MissingExtra, match=r"pip install 'dualrs\[diffusion\]'"):
            asked()


# The hub


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub of our own on this machine, which accepts connections and never answers; its cache is empty."""
    from huggingface_hub import constants

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(diffusion, "_HUB_SECONDS", 0.2)
        yield server


@pytest.mark.parametrize("gone", [True, False], ids=["no hub", "a silent hub"])
def test_hub_that_does_not_answer_is_given_up_soon(hub, gone):
    if gone:
        hub.close()
    began = time.perf_counter()
    with pytest.raises(Unreachable, match=r"no folder owner/name here.* give its folder"):
        load_diffusers("owner/name")
    assert time.perf_counter() - began < 5


def test_cached_model_is_loaded_if_the_hub_does_not_answer(hub, saved, tmp_path):
    denoiser, folder = saved
    cached = tmp_path / "cache" / "models--owner--name"
    revision = "0" * 40
    shutil.copytree(folder, cached / "snapshots" / revision)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(revision)
    assert_same(denoiser, load_diffusers("owner/name"))
