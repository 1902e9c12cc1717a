"""What others see of the project: its package, its citation, its workflow."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from dualrs.version import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RELATIVE = re.compile(r"\]\((?!https://|#)[^)]*\)")
LINKS = (
    "See [the\nglossary](docs/glossary.md#look), [![Badge](https://a.example/b.svg)](LICENSE), ![a curve](docs/a.svg)."
)


def published(text, repository):
    pytest.importorskip("hatchling")
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.published(text, repository, "1.2.3")


def test_links_lead_into_the_repository_of_this_version():
    where = "https://forge.example/us/dualrs"
    assert published(LINKS, where) == (
        f"See [the\nglossary]({where}/blob/v1.2.3/docs/glossary.md#look), "
        f"[![Badge](https://a.example/b.svg)]({where}/blob/v1.2.3/LICENSE), ![a curve]({where}/raw/v1.2.3/docs/a.svg)."
    )


def test_without_a_repository_links_are_words():
    assert published(LINKS, None) == "See the\nglossary, ![Badge](https://a.example/b.svg), *a curve*."


def test_the_badge_of_the_tests_leads_to_the_forge_or_is_left_out():
    badge = "[![Tests](../../actions/workflows/ci.yml/badge.svg)](../../actions/workflows/ci.yml)\n"
    assert badge in README
    where = "https://forge.example/us/dualrs/actions/workflows/ci.yml"
    assert published(badge, "https://forge.example/us/dualrs") == f"[![Tests]({where}/badge.svg)]({where})\n"
    assert published(f"a\n{badge}b", None) == "a\nb"


@pytest.mark.parametrize("repository", [None, "https://forge.example/us/dualrs"])
def test_no_link_of_the_readme_is_broken_on_a_package_index(repository):
    assert RELATIVE.search(README)
    assert not RELATIVE.search(published(README, repository))


def test_the_package_shows_this_readme():
    metadata = pytest.importorskip("hatchling.metadata.core")
    from hatchling.plugin.manager import PluginManager

    project = metadata.ProjectMetadata(str(ROOT), PluginManager())
    address = project.core_raw_metadata.get("urls", {}).get("Repository")
    assert project.core.readme == published(README, address).replace("v1.2.3/", f"v{__version__}/")


def test_the_source_archive_has_all_but_results():
    sdist = pytest.importorskip("hatchling.builders.sdist")
    kept = {file.relative_path for file in sdist.SdistBuilder(str(ROOT)).recurse_included_files()}
    assert {"README.md", "CITATION.cff", "hatch_build.py", "src/dualrs/__init__.py", "results/README.md"} <= kept
    assert not [name for name in kept if name.startswith("results/") and name.count("/") > 1]
    assert sum((ROOT / name).stat().st_size for name in kept) < 30e6


def test_the_citation_is_that_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    paper = citation["preferred-citation"]
    assert citation["version"] == __version__
    assert f"version = {{{__version__}}}" in README
    assert paper["title"] in README
    assert paper["url"] in README
    assert all(f"{author['family-names']}, {author['given-names']}" in README for author in paper["authors"])


def test_the_workflow_runs_what_every_landing_runs():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert [step["run"] for step in workflow["jobs"]["landing"]["steps"] if "run" in step] == [".ci/run"]


@pytest.mark.parametrize("form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml")), ids=lambda f: f.stem)
def test_issue_forms_have_what_the_forge_demands(form):
    parsed = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= parsed.keys()
    assert all(part["type"] in {"markdown", "textarea", "input"} and part["attributes"] for part in parsed["body"])
    assert any(part["type"] != "markdown" for part in parsed["body"])
