"""Every snippet of every document runs as it stands, in an empty folder, and prints what is shown below it."""

import re
import shlex

import pytest
from made import DOCUMENTS, ROOT, Block, blocks
from typer.main import get_command

from dualrs.cli import app
from dualrs.config import load_any

SNIPPETS = [block for document in DOCUMENTS for block in blocks(document) if block.python]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fenced(language):
    """The blocks of a language in all documents, each with where it stands."""
    for document in DOCUMENTS:
        for number, (found, text) in enumerate(FENCED.findall(document.read_text(encoding="utf-8"))):
            if found == language:
                yield pytest.param(text, id=f"{document.relative_to(ROOT)} {number}")


def commands(text):
    """The words of every command of dualrs in a block, without its comment."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.split()[:1] == ["dualrs"]:  # what a command prints may have an apostrophe, which no shell would read
            yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_snippet_runs_as_it_stands_and_prints_what_is_shown(snippet, tmp_path):
    made = snippet.make(tmp_path)
    assert snippet.same(made), made


def test_a_snippet_that_prints_something_else_is_noticed(tmp_path):
    shown = Block(ROOT / "README.md", 1, "print('radius 0.41 of 3')", True, "radius 0.40 of 3\n", (0, 0))
    assert shown.same(shown.make(tmp_path))
    for other in ("radius 0.39 of 3\n", "radius 0.41 of 2\n", "radius 0.41\n"):
        assert not Block(ROOT / "README.md", 1, shown.code, True, other, (0, 0)).same(shown.make(tmp_path))


@pytest.mark.parametrize("text", list(fenced("toml")))
def test_recipe_in_a_document_can_be_read(text, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    assert load_any(path)


@pytest.mark.parametrize("text", [block for block in fenced("") if list(commands(block.values[0]))])
def test_command_in_a_document_has_options_that_exist(text):
    """It is parsed, not run: some take hours."""
    for words in commands(text):
        group = get_command(app)
        context = group.make_context("dualrs", [], resilient_parsing=True)
        while hasattr(group, "get_command"):
            name, *words = words
            group = group.get_command(context, name)
        assert group.make_context(name, [word for word in words if word != "..."])
