"""Every link in the documents leads to a file that is there and, where it names one, to a heading of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").glob("*.md")])
LINK = re.compile(r"\]\((?!https?://|mailto:|\.\./\.\./actions/)([^()\s]+)\)")  # actions: a page of the forge


def prose(document):
    """A document without its blocks and spans of code."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(document):
    """The names that headings get, as the forge and the site make them."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken(document):
    """The links of a document that lead nowhere."""
    for link in LINK.findall(prose(document)):
        file, _, heading = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        if not target.exists() or (heading and heading not in anchors(target)):
            yield link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    assert list(broken(document)) == []


def test_the_check_can_fail(tmp_path):
    (tmp_path / "a.md").write_text("# A title\n[b](b.md), [c](c.md#none), [good](c.md#here-it-is), [own](#a-title)\n")
    (tmp_path / "c.md").write_text("## Here it is\n```\n## None\n```\n")
    assert list(broken(tmp_path / "a.md")) == ["b.md", "c.md#none"]
