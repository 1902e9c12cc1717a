"""Settings put into the text of a recipe: they are there, and all else is as it was."""

import tomllib

import pytest

from dualrs.config.edit import with_settings, with_table
from dualrs.errors import BadRecipe

RECIPE = """# What: a cascade
# rule = "none of this"
title = "a cascade"  # for people
data = "net.py:data"

[model]  # its networks
classifier = "net.py:classifier"
sigmas = [
  0.1,  # the clearer
  0.2,
]

# How
[certify]
n = 1_000
rule = "cascade"  # to be tuned
seed = 0

[engine]
batch_size = 64
"""


def put(text, table, **settings):
    return with_settings(text, table, settings, "the recipe")


def test_a_value_is_replaced_and_everything_else_kept():
    assert put(RECIPE, "certify", rule="cascade-0.4") == RECIPE.replace('"cascade"  # to', '"cascade-0.4"  # to')


def test_a_list_over_several_lines_is_replaced():
    text = put(RECIPE, "model", sigmas=(0.1, 0.3))
    assert "sigmas = [0.1, 0.3]\n\n# How" in text
    assert tomllib.loads(text)["model"]["sigmas"] == [0.1, 0.3]


def test_a_key_or_a_table_that_is_not_there_is_added():
    text = put(RECIPE, "model", confidences=(0.3, 0.7))
    assert text == RECIPE.replace("# its networks\n", "# its networks\nconfidences = [0.3, 0.7]\n")
    assert put('data = "a"', "certify", rule="cascade") == 'data = "a"\n\n[certify]\nrule = "cascade"\n'
    assert put('[certify]\nrule = "a"', "certify", rule="cascade") == '[certify]\nrule = "cascade"'


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_writing_twice_changes_nothing_more(ends):
    text = RECIPE.replace("\n", ends)
    once = with_table(put(text, "certify", rule="cascade-0.4"), "tuned", {"n": 3, "inputs": ("abc", "def")}, "it")
    twice = with_table(put(once, "certify", rule="cascade-0.4"), "tuned", {"n": 3, "inputs": ("abc", "def")}, "it")
    assert once == twice
    assert once.count(ends) == once.count("\n")


def test_a_table_is_replaced_as_a_whole_and_what_follows_it_is_kept():
    old = with_table(RECIPE, "tuned", {"n": 3, "inputs": ("abc", "def"), "weights": (1.0,)}, "it")
    followed = old + "\n# The last one\n[more]\nkey = 1\n"
    text = with_table(followed, "tuned", {"n": 4, "inputs": ("ghi",)}, "it")
    assert text == RECIPE + '\n[tuned]\nn = 4\ninputs = [\n  "ghi",\n]\n\n# The last one\n[more]\nkey = 1\n'


@pytest.mark.parametrize(
    "text",
    [
        'certify = { rule = "cascade" }\n',
        'certify.rule = "cascade"\n',
        '[certify]\nrule = """\ncascade"""\n',
        '[certify]\n"rule" = "cascade"\n',
        'title = """\n[certify]\nrule = 1\n"""\n',
    ],
)
def test_what_is_laid_out_otherwise_is_refused(text):
    with pytest.raises(BadRecipe, match=r"the recipe cannot be changed .*give \[certify\] lines of its own"):
        put(text, "certify", rule="cascade-0.4")
