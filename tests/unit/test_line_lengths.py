"""No line of a document is longer than 120 characters; a table, a picture or a command may be."""

import re

import pytest
from made import DOCUMENTS, ROOT

NO_PROSE = re.compile(r"^```.*?^```|^<!--.*?-->|^[|!][^\n]*", re.DOTALL | re.MULTILINE)


def long_lines(text):
    return [line for line in NO_PROSE.sub("", text).splitlines() if len(line) > 120]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_lines_of_documents_are_short(document):
    assert long_lines(document.read_text(encoding="utf-8")) == []


def test_the_check_can_fail():
    long = "word " * 25
    assert long_lines(f"# Title\n{long}\n\n```\n{long}\n```\n<!-- made by: {long}\n{long} -->\n| {long} |\n") == [long]
