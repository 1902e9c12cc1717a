"""Methods between a denoiser and a network: their names, and what stands behind them."""

import pytest
import torch
from torch import nn

import dualrs
from dualrs.errors import BadModel, BadRecipe, BadSetting
from dualrs.models.between import FORMS, DensePure, DiffSmooth, parse_between, spell_between
from dualrs.models.local import LocallySmoothed
from dualrs.models.randomness import FromGenerator
from dualrs.models.reference import Reference
from dualrs.pipeline.networks import Networks

NETS = """
import torch
from torch import nn


class Half(nn.Module):
    def forward(self, noisy, sigma):
        return noisy / 2


class Shaky(nn.Module):
    def forward(self, noisy, sigma, randomness):
        return noisy + 0 * randomness.rand(*noisy.shape)


denoiser = Half().eval()
shaky = Shaky().eval()
torch.manual_seed(0)
network = nn.Sequential(nn.Flatten(), nn.Linear(36, 3)).eval()
router = nn.Sequential(nn.Flatten(), nn.Linear(36, 2)).eval()
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    return Networks()


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("diffsmooth", DiffSmooth()),
        ("diffsmooth()", DiffSmooth(5, 0.25)),
        ("diffsmooth(m=7, sigma=.5)", DiffSmooth(7, 0.5)),
        ("densepure", DensePure(10, 2)),
        ("densepure (b=3)", DensePure(10, 3)),
        ("densepure(K=40,b=5)", DensePure(40, 5)),
    ],
)
def test_names_and_settings(text, method):
    assert parse_between(text) == method
    assert parse_between(spell_between(method)) == method
    assert spell_between(type(method)()) in FORMS.split(" or ")


@pytest.mark.parametrize(
    "text", ["local", "diffsmooth(", "diffsmooth(5)", "diffsmooth(m=two)", "diffsmooth(m=5,m=6)", "densepure(m=5)"]
)
def test_anything_else_is_refused_with_what_there_is(text):
    with pytest.raises(BadRecipe, match=r"\(with diffsmooth\(m=5,sigma=0.25\) or densepure\(K=10,b=2\) between"):
        Reference.parse(f"zoo:a | {text} | zoo:b")


def test_too_many_parts_are_refused():
    with pytest.raises(BadRecipe, match=r"nor DENOISER \| NETWORK"):
        Reference.parse("a | diffsmooth | densepure | b")


def test_networks_by_the_same_method_share_what_they_can(nets):
    router, classifier = (nets(f"nets.py:denoiser | diffsmooth | nets.py:{name}") for name in ("router", "network"))
    assert router.front is classifier.front is nets("nets.py:denoiser")
    assert nets("nets.py:denoiser | diffsmooth(m=5) | nets.py:network") is classifier
    assert nets("nets.py:denoiser | diffsmooth(m=6) | nets.py:network") is not classifier


def test_training_takes_a_denoiser_alone(nets):
    alone = r"trained behind a denoiser alone.*put diffsmooth\(m=5,sigma=0.25\) between"
    with pytest.raises(BadRecipe, match=alone):
        nets.going_on(Reference.parse("nets.py:denoiser | diffsmooth | nets.py:network"))
    with pytest.raises(BadRecipe, match=alone):
        nets.fresh(Reference.parse("nets.py:network").behind("nets.py:denoiser | diffsmooth"), {}, 0)


@pytest.mark.parametrize(
    "text", ["nets.py:shaky | nets.py:network", "nets.py:shaky", "nets.py:denoiser | nets.py:shaky"]
)
def test_training_gives_no_randomness(nets, text):
    for trainee in (nets.going_on, lambda reference: nets.fresh(reference, {}, 0)):
        with pytest.raises(
            BadRecipe, match=r"'nets.py:shaky' draws numbers of its own, which training does not give it"
        ):
            trainee(Reference.parse(text))


def test_densepure_stands_behind_any_denoiser_that_draws_nothing(nets):
    assert nets("nets.py:denoiser | densepure(K=3) | nets.py:network").takes_randomness
    with pytest.raises(BadModel, match="behind a denoiser that draws nothing"):
        nets("nets.py:shaky | densepure | nets.py:network")


# DiffSmooth


class Told(nn.Module):
    """Remembers what it is shown and told."""

    def __init__(self):
        super().__init__()
        self.seen, self.sigmas, self.classes = [], [], ["cat", "dog"]
        self.eval()

    def forward(self, x, sigma):
        self.seen.append(x)
        self.sigmas.append(sigma)
        return x.flatten(1)[:, :2] * 3


def randomness(seed=0):
    return FromGenerator(torch.Generator().manual_seed(seed), torch.device("cpu"))


def test_mean_softmax_over_fresh_noises():
    told, x = Told(), torch.rand(4, 1, 3, 3)
    logits = LocallySmoothed(told, m=5, sigma=0.25)(x, randomness())
    noises = [torch.randn(x.shape, generator=g) for g in [torch.Generator().manual_seed(0)] for _ in range(5)]
    for seen, noise in zip(told.seen, noises, strict=True):
        torch.testing.assert_close(seen, x + 0.25 * noise)
    mean = torch.stack([(seen.flatten(1)[:, :2] * 3).softmax(dim=1) for seen in told.seen]).mean(dim=0)
    torch.testing.assert_close(logits.exp(), mean)
    assert told.sigmas == [0.25] * 5


def test_it_has_the_names_and_routes_of_its_network():
    told = Told()
    told.routes = ((0.25, 0.5), 1.0)
    smoothed = LocallySmoothed(told)
    assert names_of(smoothed) == (("cat", "dog"), told.routes)
    assert "m=5, sigma=0.25" in repr(smoothed)


def names_of(module):
    return module.classes, module.routes


@pytest.mark.parametrize(("m", "sigma"), [(0, 0.25), (5, 0.0), (5, -1.0), (5, float("nan"))])
def test_settings_out_of_range_are_refused(m, sigma):
    with pytest.raises(BadSetting, match="local smoothing needs at least one noise, of positive sigma"):
        LocallySmoothed(Told(), m, sigma)


def test_certified_with_a_cascade_and_passing_votes(nets):
    classifier = nets("nets.py:denoiser | diffsmooth(m=2) | nets.py:network")
    images = torch.rand(2, 1, 6, 6).mul(255).round().div(255)
    model = dualrs.Cascade(classifier, sigmas=(0.25, 0.5), batch_size=64)
    found = [model.certify(images, n=200, n0=20, alpha=0.1, rule="cascade-0.4", seed=1) for _ in range(2)]
    assert (found[0].radius == found[1].radius).all()
    router = nets("nets.py:denoiser | diffsmooth(m=2) | nets.py:router")
    dual = dualrs.DualSmoothed(router, classifier, (0.25, 0.5), 0.5, batch_size=64)
    one, other = (
        dual.certify(images, n=200, n0=20, alpha=0.1, seed=1, ids=order)[place]
        for order, place in ((["a", "b"], 0), (["a", "c"], 0))
    )
    assert one == other
