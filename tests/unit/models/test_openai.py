"""OpenAI's checkpoints: every tensor finds its place, and the converted networks answer as OpenAI's own code did.

tests/fixtures/openai_networks.json has the names and shapes of OpenAI's tensors for four networks, openai_answers.npz
what two of them, small ones, answered. Both were written by tests/fixtures/make_openai.py with OpenAI's code.
"""

import hashlib
import json
import math
import os
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dualrs.errors import BadCheckpoint
from dualrs.models import openai
from dualrs.models.openai import CIFAR10, IMAGENET, convert, empty_unet, key_map, load_openai

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHAPES = {
    network: {key: tuple(shape) for key, shape in shapes.items()}
    for network, shapes in json.loads((FIXTURES / "openai_networks.json").read_text()).items()
}
ANSWERS = np.load(FIXTURES / "openai_answers.npz")

# As the published ones, but small: attention in the middle levels or in the last, both ways of resampling.
SMALL_IMPROVED = replace(
    CIFAR10, name="small", size=8, channels=32, multipliers=(1, 2, 2), blocks=2, attention=(1,), head_width=16
)
SMALL_GUIDED = replace(
    IMAGENET, name="small", size=8, channels=32, multipliers=(1, 2, 2), blocks=1, attention=(1, 2), head_width=16
)
SMALL = {"small_improved": SMALL_IMPROVED, "small_guided": SMALL_GUIDED}
LAYOUTS = {"improved": CIFAR10, "guided": IMAGENET, **SMALL}


def hashed_weights(shapes):
    """Weights that need no storage: the bytes of a hash of their name. Every tensor is filled, norms and biases too."""
    weights = {}
    for key, shape in shapes.items():
        count = math.prod(shape)
        values = np.frombuffer(hashlib.shake_256(key.encode()).digest(count), np.int8).reshape(shape) / 128
        if len(shape) > 1:
            values = values * math.sqrt(3 * shape[0] / count)  # so that activations keep their scale
        elif key.endswith("weight"):
            values = 1 + values / 2
        weights[key] = torch.from_numpy(values.astype(np.float32))
    return weights


def small_checkpoint(network):
    return hashed_weights(SHAPES[network])


def answer(denoiser, network):
    """What the network itself says to the stored input."""
    x, timesteps = (torch.from_numpy(ANSWERS[f"{network}_{name}"]) for name in ("x", "timesteps"))
    with torch.no_grad():
        return denoiser.eval().unet(x, timesteps).sample.numpy()


# Every tensor finds its place


@pytest.mark.parametrize("network", LAYOUTS)
def test_every_tensor_of_theirs_is_used_once_and_every_one_of_ours_is_filled(network):
    layout = LAYOUTS[network]
    mapping = key_map(layout)
    assert set(mapping) == set(empty_unet(layout).state_dict())
    uses = Counter(mapping.values())
    assert set(uses) == set(SHAPES[network])
    assert all(count == (3 if ".qkv." in key else 1) for key, count in uses.items())


@pytest.mark.parametrize("network", LAYOUTS)
def test_shapes_agree(network):
    """The loading is strict about shapes; the meta device has nothing else."""
    meta = {key: torch.empty(shape, device="meta") for key, shape in SHAPES[network].items()}
    unet = convert(meta, LAYOUTS[network]).unet
    assert sum(p.numel() for p in unet.parameters()) == sum(math.prod(s) for s in SHAPES[network].values())


def test_published_networks_are_of_the_size_that_the_paper_says():
    millions = {name: sum(math.prod(s) for s in SHAPES[name].values()) / 1e6 for name in ("improved", "guided")}
    assert {name: int(count) for name, count in millions.items()} == {"improved": 52, "guided": 552}


# The same answers


@pytest.mark.parametrize("network", SMALL)
def test_converted_network_answers_as_the_original(network):
    expected = ANSWERS[f"{network}_output"]
    assert expected.std() > 0.3
    np.testing.assert_allclose(answer(convert(small_checkpoint(network), SMALL[network]), network), expected, atol=1e-5)


@pytest.mark.parametrize("sigma", [0.25, 1.0])
@pytest.mark.parametrize("network", SMALL)
def test_clean_estimate_is_that_of_the_original_code(network, sigma):
    """OpenAI's GaussianDiffusion, its schedule and its rescaled timesteps against ours."""
    noisy = torch.from_numpy(ANSWERS[f"{network}_noisy_{sigma}"])
    expected = ANSWERS[f"{network}_clean_{sigma}"]
    assert np.mean((expected > 0) & (expected < 1)) > 0.2  # not everything is clipped
    with torch.no_grad():
        clean = convert(small_checkpoint(network), SMALL[network]).eval()(noisy, sigma).numpy()
    np.testing.assert_allclose(clean, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("layout", "sigma", "step"),
    [
        (CIFAR10, 0.25, 1158),
        (CIFAR10, 0.5, 1984),
        (CIFAR10, 1.0, 2809),
        (IMAGENET, 0.25, 145),
        (IMAGENET, 0.5, 259),
        (IMAGENET, 1.0, 396),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_timesteps_are_those_of_the_original_schedules(layout, sigma, step):
    kept = layout.schedule.alphas_cumprod()
    ratios = ((1 - kept) / kept).sqrt()
    assert ratios[step - 1] < 2 * sigma <= ratios[step]


def exchanged(first, second):
    """A checkpoint in which two thirds of every qkv tensor changed places, whole thirds or head by head."""

    def sabotage(state, width):
        for key in (key for key in state if ".qkv." in key):
            heads = state[key].reshape(-1, 3, width, *state[key].shape[1:]).clone()
            heads[:, [first, second]] = heads[:, [second, first]]
            state[key] = heads.reshape(state[key].shape)

    return sabotage


def thirds_in_place_of_heads(state, width):
    """The order of other code bases: all queries, then all keys, then all values."""
    for key in (key for key in state if ".qkv." in key):
        heads = state[key].reshape(-1, 3, width, *state[key].shape[1:])
        state[key] = heads.transpose(0, 1).reshape(state[key].shape)


def scale_and_shift_exchanged(state, width):
    for key in (key for key in state if ".emb_layers." in key):
        state[key] = torch.cat(state[key].chunk(2)[::-1])


def cosines_after_sines(state, width):
    state["time_embed.0.weight"] = torch.cat(state["time_embed.0.weight"].chunk(2, dim=1)[::-1], dim=1)


@pytest.mark.parametrize(
    "sabotage",
    [
        pytest.param(exchanged(0, 1), id="queries for keys"),
        pytest.param(exchanged(1, 2), id="keys for values"),
        pytest.param(thirds_in_place_of_heads, id="another order of heads"),
        pytest.param(scale_and_shift_exchanged, id="scale for shift"),
        pytest.param(cosines_after_sines, id="sines for cosines"),
    ],
)
@pytest.mark.parametrize("network", SMALL)
def test_the_comparison_can_fail(network, sabotage):
    state = small_checkpoint(network)
    sabotage(state, SMALL[network].head_width)
    error = np.abs(answer(convert(state, SMALL[network]), network) - ANSWERS[f"{network}_output"]).max()
    assert error > 0.01


# Files


@pytest.fixture
def believed(monkeypatch):
    """Weights drawn from a hash restore nothing; what is compared here is the conversion."""
    monkeypatch.setattr(openai, "demand_restores", lambda denoiser, size, source: None)


@pytest.fixture
def small_published(monkeypatch):
    monkeypatch.setattr(openai, "PUBLISHED", tuple(SMALL.values()))


SAID = {"small_improved": "heads=4&schedule=cosine", "small_guided": "head_width=16&schedule=linear"}
SAID |= {"improved": "heads=4&schedule=cosine", "guided": "head_width=64&schedule=linear"}


@pytest.mark.parametrize("network", SMALL)
def test_checkpoint_is_recognised_and_loaded(network, small_published, believed, tmp_path):
    torch.save(small_checkpoint(network), tmp_path / "any name.pt")
    denoiser = load_openai(f"{tmp_path / 'any name.pt'}?{SAID[network]}")
    assert denoiser.schedule == SMALL[network].schedule
    assert not any(part.training for part in denoiser.modules())
    np.testing.assert_allclose(answer(denoiser, network), ANSWERS[f"{network}_output"], atol=1e-5)


@pytest.mark.parametrize("network", ["improved", "guided"])
def test_published_checkpoint_is_recognised(network, believed, tmp_path):
    """Full shapes that take one number each: a value repeated with stride 0."""
    torch.save({key: torch.zeros(()).expand(shape) for key, shape in SHAPES[network].items()}, tmp_path / "file.pt")
    assert load_openai(f"{tmp_path}/file.pt?{SAID[network]}").schedule == LAYOUTS[network].schedule


def test_weights_in_half_precision_become_float32(small_published, believed, tmp_path):
    torch.save({key: value.half() for key, value in small_checkpoint("small_guided").items()}, tmp_path / "file.pt")
    denoiser = load_openai(f"{tmp_path}/file.pt?{SAID['small_guided']}")
    assert {p.dtype for p in denoiser.parameters()} == {torch.float32}
    np.testing.assert_allclose(answer(denoiser, "small_guided"), ANSWERS["small_guided_output"], atol=0.02)


def test_converted_checkpoint_survives_saving(small_published, tmp_path):
    from dualrs.models.diffusion import load_diffusers

    denoiser = convert(small_checkpoint("small_improved"), SMALL_IMPROVED)
    denoiser.save(tmp_path)
    again = load_diffusers(tmp_path)
    assert again.schedule == SMALL_IMPROVED.schedule
    np.testing.assert_array_equal(answer(again, "small_improved"), answer(denoiser, "small_improved"))


# What a file cannot tell


@pytest.mark.parametrize("network", ["improved", "small_improved"])
def test_what_is_said_of_a_published_network_is_its_layout(network):
    assert openai._as_said(LAYOUTS[network], SAID[network], Path("x.pt")) == LAYOUTS[network]
    assert openai._as_said(IMAGENET, IMAGENET.said, Path("x.pt")) == IMAGENET
    assert openai._as_said(CIFAR10, CIFAR10.said, Path("x.pt")) == CIFAR10


@pytest.mark.parametrize("network", SMALL)
def test_a_file_of_unknown_checksum_needs_its_settings_said(network, small_published, tmp_path):
    torch.save(small_checkpoint(network), tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match=r"not known by its checksum.*file\.pt\?head"):
        load_openai(tmp_path / "file.pt")


def test_a_known_checksum_needs_nothing_said(small_published, tmp_path, monkeypatch):
    path = tmp_path / "file.pt"
    torch.save(small_checkpoint("small_guided"), path)
    known = replace(SMALL_GUIDED, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(openai, "PUBLISHED", (SMALL_IMPROVED, known))
    np.testing.assert_allclose(answer(load_openai(path), "small_guided"), ANSWERS["small_guided_output"], atol=1e-5)


def test_attention_in_the_new_order_is_said(small_published, believed, tmp_path):
    state = small_checkpoint("small_guided")
    thirds_in_place_of_heads(state, 16)
    torch.save(state, tmp_path / "file.pt")
    denoiser = load_openai(f"{tmp_path}/file.pt?{SAID['small_guided']}&order=thirds")
    np.testing.assert_allclose(answer(denoiser, "small_guided"), ANSWERS["small_guided_output"], atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "schedule"),
    [
        ("schedule=linear", {"beta_start": 2.5e-5, "beta_end": 0.005, "num_train_timesteps": 4000}),
        ("schedule=linear&steps=2000", {"beta_start": 5e-5, "num_train_timesteps": 2000, "timestep_scale": 0.5}),
        ("schedule=cosine&steps=1000", {"beta_start": 1e-4, "num_train_timesteps": 1000, "timestep_scale": 1.0}),
    ],
)
def test_other_schedules_are_said(settings, schedule):
    said = openai._as_said(CIFAR10, f"heads=8&{settings}", Path("x.pt"))
    assert said.head_width == 32
    assert {name: getattr(said.schedule, name) for name in schedule} == pytest.approx(schedule)


@pytest.mark.parametrize(
    "settings",
    [
        *("", "heads=4", "schedule=cosine", "heads=4&schedule=cubic", "heads=3&schedule=cosine"),
        *("heads=4&head_width=16&schedule=cosine", "heads=4&schedule=cosine&order=odd", "heads=four&schedule=cosine"),
        *("heads=4&schedule=cosine&color=red", "heads=4&schedule=cosine&steps=0", "head_width=24&schedule=cosine"),
        "heads=0&schedule=cosine",
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, small_published, tmp_path):
    torch.save(small_checkpoint("small_improved"), tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match=r"settings .* are not understood"):
        load_openai(f"{tmp_path}/file.pt?{settings}")


def test_a_denoiser_that_restores_nothing_is_refused(small_published, tmp_path):
    torch.save(small_checkpoint("small_guided"), tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match=r"does not restore images: at sigma 0\.25 it is off by"):
        load_openai(f"{tmp_path}/file.pt?{SAID['small_guided']}")


def with_nan(state):
    state["out.2.bias"][0] = torch.nan
    return state


def without_a_tensor(state):
    del state["out.2.bias"]
    return state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(without_a_tensor, "other names", id="a tensor is missing"),
        pytest.param(with_nan, r"out\.2\.bias holds NaN or infinity", id="not a number"),
        pytest.param(
            lambda s: {**s, "label_emb.weight": torch.zeros(1000, 128)}, "other names", id="class-conditional"
        ),
        pytest.param(lambda s: {**s, "out.2.bias": torch.zeros(3)}, "other shapes", id="no learned variance"),
        pytest.param(
            lambda s: {**s, "middle_block.1.qkv.bias": torch.zeros(190)},
            "other shapes",
            id="attention of another width",
        ),
        pytest.param(
            lambda s: {**s, "time_embed.0.weight": s["time_embed.0.weight"].T}, "other shapes", id="transposed"
        ),
        pytest.param(lambda s: {}, "other names", id="nothing in it"),
        pytest.param(lambda s: {"state_dict": s}, "other than named tensors", id="wrapped"),
        pytest.param(lambda s: list(s.values()), "other than named tensors", id="a list"),
    ],
)
def test_another_network_is_refused(change, message, small_published, tmp_path):
    torch.save(change(small_checkpoint("small_guided")), tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match=message):
        load_openai(tmp_path / "file.pt")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_file_cut_short_is_refused(share, small_published, tmp_path):
    path = tmp_path / "file.pt"
    torch.save(small_checkpoint("small_guided"), path)
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(BadCheckpoint, match="cut short"):
        load_openai(path)


@pytest.mark.parametrize("name", ["nowhere.pt", "."])
def test_missing_file_is_refused(name, tmp_path):
    with pytest.raises(BadCheckpoint, match="there is no file"):
        load_openai(tmp_path / name)


def test_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "file.pt").write_text("<!DOCTYPE html><title>Not found</title>")
    with pytest.raises(BadCheckpoint, match="holds more than weights"):
        load_openai(tmp_path / "file.pt")


class Code:
    """Writes a file if it is ever unpickled."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


@pytest.mark.parametrize("save", [torch.save, lambda thing, path: path.write_bytes(pickle.dumps(thing))])
def test_code_in_a_checkpoint_is_not_run(save, small_published, tmp_path):
    path, witness = tmp_path / "file.pt", tmp_path / "ran"
    save({**small_checkpoint("small_guided"), "out.2.bias": Code(witness)}, path)
    with pytest.raises(BadCheckpoint, match="nothing in it was run"):
        load_openai(path)
    assert not witness.exists()
    if save is not torch.save:
        pickle.loads(path.read_bytes())
        assert witness.exists()  # the trap works
