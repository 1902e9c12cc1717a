"""Names that lead nowhere, answered with the nearest one; and a router's sigmas, held against the run's."""

import pytest

RUN = ("--sigma", "0.1", "-o", "run.ledger")


@pytest.mark.parametrize(
    ("network", "data", "meant"),
    [
        ("zoo:cifar10-clasifier", "net.py:data", "cifar10-classifier"),
        ("cifar10-classifier", "net.py:data", "zoo:cifar10-classifier"),
        ("net.py:clasifier", "net.py:data", "classifier"),
        ("transformer:five", "net.py:data", "transformers:five"),
        ("five", "net.py:data", "transformers:five"),
        ("net.py:classifier", "five", "folder:five"),
        ("net.py:classifier", "foldr:five", "folder:five"),
        ("net.py:classifier", "cifar10:tset", "cifar10:test"),
        ("net.py:classifier", "cifar10-subset", "cifar10:subset"),
        ("net.py:classifier", "net.py:dta", "data"),
    ],
)
def test_the_nearest_name_of_a_network_or_of_data(dualrs, folder, network, data, meant):
    (folder / "five").mkdir()
    code, _, err = dualrs("certify", "--classifier", network, "--data", data, *RUN)
    assert code == 2
    assert f"did you mean {meant}?" in err


def test_nothing_is_suggested_where_nothing_is_near(dualrs):
    code, _, err = dualrs("certify", "--classifier", "zebra", "--data", "net.py:data", *RUN)
    assert code == 2
    assert "did you mean" not in err


def test_the_nearest_key_rule_and_architecture(dualrs, folder):
    words = 'data = "net.py:data"\n[model]\nclasifier = "net.py:classifier"\nsigma = 0.1\n[certfy]\nn = 3\n'
    (folder / "odd.toml").write_text(words)
    _, _, err = dualrs("certify", "odd.toml")
    assert "model.clasifier: unknown key; did you mean classifier?" in err
    assert "certfy: unknown key; did you mean certify?" in err
    _, _, err = dualrs("certify", "--classifier", "net.py:classifier", "--data", "net.py:data", *RUN, "--rule", "cohn")
    assert "did you mean cohen?" in err
    train = ("--data", "net.py:data", "--test", "net.py:data", "--network", "resnet21", "--batch-size", "4")
    _, _, err = dualrs("train", "classifier", "net.safetensors", *train)
    assert "did you mean resnet20?" in err


def test_certify_on_a_recipe_for_rounds_says_so(dualrs):
    code, _, err = dualrs("certify", "cifar10-cpu", "-o", "run.ledger")
    assert code == 2
    assert "run `dualrs rounds cifar10-cpu`, and then" in err
    assert "dualrs certify --model runs/cifar10-cpu/bundle" in err


@pytest.mark.parametrize(("sigmas", "sigma_e"), [("0.25,0.5", "1.0"), ("0.25,0.5,1.0", "1.5"), ("0.5,0.25,1.0", "1.0")])
def test_sigmas_that_the_router_was_not_trained_for_are_refused(dualrs, sigmas, sigma_e):
    router = ("--router", "zoo:cifar10-denoiser | zoo:cifar10-router", "--classifier", "zoo:cifar10-experts")
    run = ("--sigmas", sigmas, "--sigma-e", sigma_e, "--data", "cifar10:subset", "-o", "run.ledger")
    code, _, err = dualrs("certify", *router, *run)
    assert code == 2
    assert "the router was trained to choose from sigmas 0.25, 0.5, 1 at sigma_e 1, and the run has" in err
