"""Where networks run: on a GPU where there is one, and where a run was if it goes on."""

import pytest

from dualrs.models import hardware

SAID = "networks run on cuda, the GPU of this machine; --device cpu takes the processor"
SIGMAS = ("--sigmas", "0.1,0.2")
CASCADE = ("--classifier", "net.py:classifier", *SIGMAS, "--data", "net.py:data", "--n", "50", "--seed", "0")
TRAIN = ("--data", "net.py:data", "--epochs", "1", "--batch-size", "6", "--network", "net.py:training")
ROUNDS = """
data = "net.py:data"
test = "net.py:data"
[start]
classifier = "net.py:classifier"
sigmas = [0.1, 0.2]
sigma_e = 0.2
[router]
batch_size = 4
[finetune]
batch_size = 4
"""
CERTIFY = """
data = "net.py:data"
model = {classifier = "net.py:classifier", sigmas = [0.1, 0.2]}
"""


@pytest.fixture
def gpu(monkeypatch):
    """A machine that claims to have one; to open it fails here, which shows that it was taken."""
    monkeypatch.setattr(hardware, "best_device", lambda: "cuda")


@pytest.fixture
def recipes(folder):
    (folder / "rounds.toml").write_text(ROUNDS)
    (folder / "certify.toml").write_text(CERTIFY)


@pytest.mark.usefixtures("gpu", "recipes")
@pytest.mark.parametrize(
    "words",
    [
        ("start", "--inputs", "0:1"),
        ("certify", *CASCADE, "-o", "run.ledger"),
        ("predict", *CASCADE[:-4]),
        ("panel", "certify.toml", "-o", "runs"),
        ("label", *CASCADE[:-4], "-o", "labels.ledger"),
        ("assign", "--router", "net.py:router", *SIGMAS, "--data", "net.py:data", "-o", "assigned.ledger"),
        ("train", "classifier", "c.safetensors", *TRAIN, "--test", "net.py:data"),
        ("rounds", "rounds.toml"),
        ("evaluate", "net.py:classifier", "--data", "net.py:data"),
    ],
    ids=lambda words: words[0],
)
def test_a_gpu_is_taken_and_said_in_a_line(dualrs, words):
    code, _, err = dualrs(*words)
    assert err.count(SAID) == 1
    assert "unknown device 'cuda', or this machine has none" in err
    assert code == 2


@pytest.mark.usefixtures("gpu", "recipes")
@pytest.mark.parametrize("recipe", ["certify.toml", "rounds.toml"])
def test_times_are_measured_where_the_recipe_would_run(dualrs, recipe):
    code, out, err = dualrs("recipe", "check", recipe)
    assert code == 0
    assert err.count(SAID) == 1
    assert "unknown device 'cuda'" in out


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "words", [("certify", *CASCADE, "-o", "run.ledger"), ("evaluate", "net.py:classifier", "--data", "net.py:data")]
)
def test_the_device_that_is_asked_for_is_taken_in_silence(dualrs, words):
    code, _, err = dualrs(*words, "--device", "cpu")
    assert code == 0, err
    assert SAID not in err


def test_a_run_that_goes_on_stays_where_it_was(dualrs, monkeypatch, recipes):
    run = ("certify", *CASCADE, "-o", "run.ledger")
    panel = ("panel", "certify.toml", "-o", "runs", "--n", "50", "--seed", "0")
    for words in (run, panel):
        assert dualrs(*words, "--inputs", "0:3", "--device", "cpu")[0] == 0
    monkeypatch.setattr(hardware, "best_device", lambda: "cuda")
    for words in (run, panel, ("verify", "run.ledger", "--redraw", "2", "--recipe", "certify.toml")):
        code, _, err = dualrs(*words)
        assert code == 0, err
        assert SAID not in err


@pytest.mark.parametrize(
    ("cuda", "mps", "best"), [(True, False, "cuda"), (True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_best_device(monkeypatch, cuda, mps, best):
    monkeypatch.setattr(hardware.torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(hardware.torch.backends.mps, "is_available", lambda: mps)
    assert hardware.best_device() == best
