"""Page: one or several ledgers as one HTML file that opens from disk and asks the network for nothing.

Enters: ledgers, and their images if they are at hand. Leaves: the text of the page. It holds the votes, and small
scripts of our own, one subject each, that certify them at any settings, draw and explain; a plotting library alone
would weigh more than 500 inputs with their images.
"""

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from dualrs.report.page.content import content
from dualrs.report.page.run import Pictures, Run, read_run
from dualrs.report.page.tables import guarantees, header, headline, subtitle

# In the order in which they build on one another.
ARITHMETIC = ("numbers", "votes", "rules", "methods", "words", "intervals")
SEEN = (
    "elements",
    "glossary",
    "chart",
    "state",
    "controls",
    "summary",
    "diagnostics",
    "seeing",
    "steps",
    "why",
    "gallery",
)
SCRIPTS = (*ARITHMETIC, *SEEN)

__all__ = ["SCRIPTS", "Pictures", "Run", "read_run", "write_page"]


def write_page(runs: Sequence[Run], pictures: Sequence[Pictures], *, command: str, version: str) -> str:
    """The page of some runs with their pictures, in the same order."""
    names = ", ".join(run.name for run in runs)
    return Template(_asset("page.html")).substitute(
        title=escape(f"Certified robustness: {names}"),
        subtitle="<br>".join(escape(line) for run in runs for line in subtitle(run, len(runs) > 1)),
        headline=headline(runs),
        guarantees=guarantees(runs),
        runs="\n".join(header(run) for run in runs),
        version=escape(version),
        command=escape(command),
        style=_asset("page.css"),
        script="\n".join(_asset(f"script/{name}.js") for name in SCRIPTS),
        # `<` could end the script element that holds the data
        data=json.dumps(content(runs, pictures), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    )


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
