"""What documents show is made: by a snippet of Python above it, or by the command of a line `<!-- made by: ... -->`.

    python made.py                 make everything again, and write it where it stands
    python made.py docs/scale.md   that of some documents alone

Snippets run in an empty folder, commands in the repository; they draw into $OUT. Tests compare at every landing.
Commands work from ledgers that are committed. Those that need sampling are made by hand: docs/quickstart.ledger by
`dualrs start -o docs`, the others by results/run.sh. Tests sample a part of the first again.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "results").rglob("README.md")])
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_SNIPPET = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:^```\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"^<!-- made by: (?P<code>.*?) -->\n\n"
    r"(?:```\n(?P<output>.*?)^```\n|(?P<table>(?:^\|[^\n]*\n)+)|!\[[^\]]*\]\((?P<picture>[^)]*\.svg)\))",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """Something that makes what a document shows, and where that stands; a snippet may have nothing to show."""

    document: Path
    line: int
    code: str
    python: bool
    shown: str | None
    span: tuple[int, int]
    picture: Path | None = None

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def make(self, folder: Path) -> str:
        """What it prints; a snippet runs in a folder of its own."""
        words = [sys.executable, "-c", self.code] if self.python else ["bash", "-euo", "pipefail", "-c", self.code]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        out = folder / "picture.svg"
        done = subprocess.run(
            words,
            cwd=folder if self.python else ROOT,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": path, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "OUT": str(out)},
        )
        if done.returncode:
            raise RuntimeError(f"{self} failed:\n{done.stderr}")
        return out.read_text() if self.picture else done.stdout

    def same(self, made: str) -> bool:
        """Whether this is what the document shows.

        Commands work from files, so theirs is the same to the letter. Networks round otherwise on other processors,
        which may change a vote or two: numbers of snippets may differ in the second decimal.
        """
        if self.shown is None or not self.python:
            return self.shown in (None, made)
        ours, theirs = (_NUMBER.findall(text) for text in (made, self.shown))
        return _NUMBER.sub("#", made) == _NUMBER.sub("#", self.shown) and all(
            abs(float(a) - float(b)) <= 0.01 for a, b in zip(ours, theirs, strict=True)
        )


def blocks(document: Path) -> Iterator[Block]:
    """Whatever is made in a document, in order."""
    text = document.read_text(encoding="utf-8")
    found = [(match, match.re is _SNIPPET) for form in (_SNIPPET, _COMMAND) for match in form.finditer(text)]
    for match, python in sorted(found, key=lambda one: one[0].start()):
        line = text.count("\n", 0, match.start()) + 1
        group = next((name for name, shown in match.groupdict().items() if shown and name != "code"), "output")
        picture = document.parent / match[group] if group == "picture" else None
        shown = picture.read_text() if picture else match[group]
        yield Block(document, line, match["code"], python, shown, match.span(group), picture)


def write(document: Path) -> None:
    """Make a document again, from its end so that places stay where they are."""
    for block in reversed(list(blocks(document))):
        print(block, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            made = block.make(Path(folder))
        if block.picture:
            block.picture.write_text(made)
        elif not block.same(made):
            text, (start, end) = document.read_text(encoding="utf-8"), block.span
            document.write_text(text[:start] + made + text[end:], encoding="utf-8")


if __name__ == "__main__":
    for document in [Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS:
        write(document)
