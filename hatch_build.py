"""The README as a package index shows it: its links into the repository lead there from everywhere.

Enters: README.md and `[project.urls] Repository`. Leaves: the long description. Links to files become links to the
files of this version in the repository; as long as the project has no such address, they become plain words. What
leads to the forge's own pages, as the badge of the tests does, goes there, or is left out.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_BADGE = r"!\[[^\[\]]*\]\([^()\s]*\)"
_LINK = re.compile(rf"(!?)\[((?:[^\[\]]|{_BADGE})+)\]\((?!https://|#)([^()\s]+)\)")

_FORGE = "../../"  # from the README to the forge's pages about the repository


def published(text: str, repository: str | None, version: str) -> str:
    """Markdown whose relative links and pictures lead into a repository, or are words where there is none."""

    def link(match: re.Match[str]) -> str:
        picture, words, file = match.groups()
        if repository is None:
            return f"*{words}*" if picture else words
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/v{version}/{file})"

    if repository is None:
        text = re.sub(rf"^.*\]\({re.escape(_FORGE)}.*\n", "", text, flags=re.MULTILINE)
    else:
        text = text.replace(f"]({_FORGE}", f"]({repository}/")
    return _LINK.sub(link, text)


class Readme(MetadataHookInterface):
    """Sets the long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the published README into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": published(text, repository, metadata["version"]),
        }
