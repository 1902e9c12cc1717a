"""The pages of the site: the documents where they lie in the repository, so that their links hold, and a reference.

Enters: what mkdocs found in docs. Leaves: the same under its place in the repository, with the other documents, the
files they link to, and a page that documents every name of the front door.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import dualrs

TAKEN = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"),
    *("docs/*.md", "docs/*.svg", "results/**/*.md", "results/**/*.png", "results/**/*.sh"),
    *("examples/*.*", "src/dualrs/recipes/**/*.toml"),
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put every document at its place in the repository."""
    root = Path(config.config_file_path).parent
    for found in [file for file in files if (file.abs_src_path or "").startswith(config.docs_dir)]:
        files.remove(found)
    for path in (path for pattern in TAKEN for path in sorted(root.glob(pattern))):
        files.append(File.generated(config, str(path.relative_to(root)), abs_src_path=str(path)))
    files.append(File.generated(config, "docs/api.md", content=reference()))
    return files


def on_page_markdown(markdown: str, **page: object) -> str:
    """Leave out the lines that lead to pages which only the forge has, as the badge of the tests."""
    return re.sub(r"^.*\]\(\.\./\.\./actions/.*\n", "", markdown, flags=re.MULTILINE)


def reference() -> str:
    """The page about what `import dualrs` offers, made from the docstrings."""
    homes = {name: f"dualrs.{home}.{name}" for home, names in dualrs._HOMES.items() for name in names}
    shown = [homes.get(name, f"dualrs.{name}") for name in dualrs.__all__ if name not in ("__version__", "ABSTAIN")]
    opening = "What `import dualrs` offers. Everything else may change from one version to the next."
    return "\n\n".join(["# Reference", opening, *(f"::: {place}" for place in shown)])
