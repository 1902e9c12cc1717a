"""The site: built offline from the documents and the docstrings, every link checked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualrs

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="the site needs the extra docs: pip install 'dualrs[docs]'")
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def build(folder, root=ROOT):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    # Nothing may ask for another machine: what does, finds no one there.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    quiet = os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=quiet)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_a_page(site):
    assert (site / "index.html").is_file()
    for document in [*ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]:
        assert (site / document.relative_to(ROOT).with_suffix(".html")).is_file(), document


def test_the_reference_has_every_public_name(site):
    page = (site / "docs" / "api.html").read_text()
    for name in set(dualrs.__all__) - {"__version__", "ABSTAIN"}:
        assert re.search(rf'id="dualrs\.(\w+\.)*{name}"', page), name


def test_pages_fetch_nothing_but_badges(site):
    fetched = r'<(?:script|img|iframe)[^>]* src="(https?:[^"]*)"|<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]*)"'
    for page in site.rglob("*.html"):
        for source in re.findall(fetched, page.read_text()):
            assert "".join(source).startswith("https://img.shields.io/badge/"), page


def test_a_link_that_leads_nowhere_fails(tmp_path):
    for name in (
        p.name for p in ROOT.iterdir() if p.name in ("docs", "src", "results", "examples") or p.suffix == ".md"
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    (tmp_path / "README.md").unlink()
    wrong = ("docs/guarantees.md#no-such-heading", "docs/none.md")
    (tmp_path / "README.md").write_text("# dualrs\n" + " ".join(f"[nowhere]({link})" for link in wrong))
    done = build(tmp_path / "site", tmp_path)
    assert done.returncode != 0
    assert all(f"'README.md' contains a link '{link}'" in done.stderr for link in wrong)
