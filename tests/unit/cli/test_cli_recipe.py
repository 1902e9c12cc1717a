"""What a recipe will cost, on the command line, and what is wrong with it."""

import pytest

RECIPE = """
title = "greys"
data = "net.py:images"
test = "net.py:images"
[start]
classifier = "net.py:classifier"
sigmas = [0.25, 0.5]
sigma_e = 0.5
[label]
inputs = "50%"
n = 40
[router]
network = "net.py:router"
epochs = 3
batch_size = 4
[assign]
n = 30
[finetune]
epochs = 5
batch_size = 4
[engine]
batch_size = 8
"""
IMAGES = """
def images():
    pixels, labels = data()
    return pixels.expand(12, 3, 4, 4).contiguous(), labels
"""


def check(dualrs, folder, text):
    (folder / "net.py").write_text((folder / "net.py").read_text() + IMAGES)
    (folder / "recipe.toml").write_text(text)
    return dualrs("recipe", "check", "recipe.toml")


def rows(out):
    cells = [[c.strip() for c in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    return {row[0]: row[1:] for row in cells}


def test_every_step_has_its_images_and_its_time(dualrs, folder):
    code, out, err = check(dualrs, folder, RECIPE)
    assert code == 0, err
    found = rows(out)
    assert {name: row[:3] for name, row in found.items()} == {
        "1-labels.ledger": ["6", "80", "480"],  # 40 votes at two sigmas
        "1-router.safetensors": ["6", "6", "36"],  # 3 epochs of two copies
        "2-assigned.ledger": ["12", "30", "360"],
        "2-classifier.safetensors": ["12", "5", "60"],
        "3-labels.ledger": ["6", "80", "480"],
        "3-router.safetensors": ["6", "6", "36"],
    }
    assert all("?" not in row for row in found.values())
    assert "in all, on this machine" in out
    assert not list(folder.glob("*.ledger"))  # measured elsewhere


def test_recipe_that_certifies(dualrs, folder):
    text = 'data = "net.py:images"\n[model]\nclassifier = "net.py:classifier"\nsigma = 0.5\n[certify]\nn = 400\n'
    code, out, _ = check(dualrs, folder, text)
    assert code == 0
    assert rows(out)["certificates"][:3] == ["12", "500", "6,000"]


def test_plan_without_the_networks_says_what_is_missing(dualrs, folder):
    text = RECIPE.replace('"net.py:classifier"', '"openai:none.pt | net.py:classifier"')
    code, out, _ = check(dualrs, folder, text)
    assert code == 0
    assert rows(out)["1-labels.ledger"] == ["6", "80", "480", "?", "?"]
    assert rows(out)["2-assigned.ledger"][3] != "?"
    assert "not measured" in out
    assert "none.pt" in out


def test_plan_without_the_data(dualrs, folder):
    code, out, _ = check(dualrs, folder, RECIPE.replace('data = "net.py:images"', 'data = "folder:nowhere"'))
    assert code == 0
    assert rows(out)["1-labels.ledger"] == ["?", "80", "?", "?", "?"]


def test_plan_for_another_machine_needs_neither_networks_nor_data(dualrs, folder):
    text = RECIPE.replace("net.py:images", "folder:nowhere").replace("net.py:classifier", "openai:none.pt")
    (folder / "recipe.toml").write_text(text)
    code, out, err = dualrs("recipe", "check", "recipe.toml", "--rate", "2", "--images", "12", "--test-images", "3")
    assert code == 0, err
    found = rows(out)
    assert found["1-labels.ledger"] == ["6", "80", "480", "2", "4 min"]
    assert found["2-classifier.safetensors"] == ["12", "5", "60", "2", "30 s"]
    assert found["certificates, fixed n"] == ["3", "20,200", "60,600", "2", "8.4 h"]
    assert found["certificates, adaptive"] == ["3", "4,040", "12,120", "2", "101 min"]
    assert "8.6 h in all, on one device of this rate" in out  # with a fixed n, and not adaptive beside it


def test_plan_for_another_machine_takes_the_data_that_are_there(dualrs, folder):
    text = 'data = "net.py:images"\n[model]\nclassifier = "openai:none.pt"\nsigma = 0.5\n[certify]\nn = 400\n'
    (folder / "net.py").write_text((folder / "net.py").read_text() + IMAGES)
    (folder / "recipe.toml").write_text(text + 'budget = "adaptive"\n')
    code, out, err = dualrs("recipe", "check", "recipe.toml", "--rate", "1e-3")
    assert code == 0, err
    assert set(rows(out)) == {"certificates, adaptive"}
    assert rows(out)["certificates, adaptive"][:3] == ["12", "100", "1,200"]
    assert rows(out)["certificates, adaptive"][4] == "13.9 days"


def test_plan_of_a_training_for_another_machine(dualrs, folder):
    text = 'data = "folder:nowhere"\n[classifier]\nnetwork = "resnet20"\nsigma = "0.5"\nepochs = 4\n'
    (folder / "recipe.toml").write_text(text)
    code, out, err = dualrs("recipe", "check", "recipe.toml", "--rate", "10", "--images", "100")
    assert code == 0, err
    assert rows(out)["weights"] == ["100", "4", "400", "10", "40 s"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--rate", "0"), "the rate must be positive"),
        (("--rate", "-3"), "the rate must be positive"),
        (("--images", "9"), "go with --rate"),
        (("--test-images", "9"), "go with --rate"),
    ],
)
def test_rate_that_is_none_is_refused(dualrs, folder, words, error):
    (folder / "recipe.toml").write_text(RECIPE)
    code, _, err = dualrs("recipe", "check", "recipe.toml", *words)
    assert code == 2
    assert error in err


def test_misspelt_key_is_refused(dualrs, folder):
    code, _, err = check(dualrs, folder, RECIPE.replace("epochs = 3", "epoch = 3"))
    assert code == 2
    assert "router.epoch: unknown key" in err


def test_rounds_refuse_a_recipe_that_certifies(dualrs, folder):
    (folder / "recipe.toml").write_text('data = "a:b"\n[model]\nclassifier = "a:b"\nsigma = 0.5\n')
    code, _, err = dualrs("rounds", "recipe.toml")
    assert code == 2
    assert "start: is missing" in err


# What a step would refuse, the check refuses, and rounds do before their first step


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("n = 40", "n = 5", "n = 5 gives no radius"),
        ("epochs = 3\nbatch_size = 4", "epochs = 3\nbatch_size = 7", "6 images do not fill one batch of 7"),
        ("epochs = 5\nbatch_size = 4", "epochs = 5\nbatch_size = 13", "12 images do not fill one batch of 13"),
        ("[engine]\n", '[certify]\nrule = "cohen"\n[engine]\n', "cohen"),
        ("[engine]\n", "[certify]\nn = 9\n[engine]\n", "n = 9 cannot certify anything"),
        ("[engine]\n", '[engine]\ndtype = "int8"\n', "unknown dtype 'int8'"),
        ('test = "net.py:images"', 'test = "net.py:data"', "have shape (3, 4, 4), those of net.py:data (1, 4, 4)"),
        ('inputs = "50%"', 'inputs = "99:"', "leaves none of the 12 inputs"),
        ('test = "net.py:images"', 'test = "net.py:others"', "has the label 7"),
        ("sigmas = [0.25, 0.5]", "sigmas = [0.25, 0.4, 0.5]", "one answer for each sigma"),
        ("epochs = 3\n", 'epochs = 3\nloss = "net.py:nothing"\n', "has no attribute 'nothing'"),
    ],
)
def test_what_a_later_step_would_refuse_is_refused_now(dualrs, folder, old, new, words):
    with (folder / "net.py").open("a") as file:
        file.write("\n\ndef others():\n    return images()[0], [7] * 12\n")
    code, _, err = check(dualrs, folder, RECIPE.replace(old, new))
    assert code == 2
    assert words in err


def test_few_votes_assign(dualrs, folder):
    """Undecided inputs take the sigma that most votes name: training needs no guarantee."""
    code, _, err = check(dualrs, folder, RECIPE.replace("n = 30", "n = 3"))
    assert code == 0, err


def test_rounds_refuse_settings_of_their_last_step_before_the_first(dualrs, folder):
    check(dualrs, folder, RECIPE.replace("[engine]\n", '[certify]\nrule = "cohen"\n[engine]\n'))
    code, _, err = dualrs("rounds", "recipe.toml")
    assert code == 2
    assert "cohen" in err
    assert not list(folder.rglob("*.ledger"))


def test_rounds_miss_the_network_of_the_router_before_the_labels(dualrs, folder):
    check(dualrs, folder, RECIPE.replace('network = "net.py:router"', 'network = "net.py:nothing"'))
    code, _, err = dualrs("rounds", "recipe.toml")
    assert code == 2
    assert "has no attribute 'nothing'" in err
    assert not list(folder.rglob("*.ledger"))
