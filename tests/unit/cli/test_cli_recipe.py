"""What a recipe will cost, on the command line."""

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


def test_misspelt_key_is_refused(dualrs, folder):
    code, _, err = check(dualrs, folder, RECIPE.replace("epochs = 3", "epoch = 3"))
    assert code == 2
    assert "router.epoch: unknown key" in err


def test_rounds_refuse_a_recipe_that_certifies(dualrs, folder):
    (folder / "recipe.toml").write_text('data = "a:b"\n[model]\nclassifier = "a:b"\nsigma = 0.5\n')
    code, _, err = dualrs("rounds", "recipe.toml")
    assert code == 2
    assert "start: is missing" in err
