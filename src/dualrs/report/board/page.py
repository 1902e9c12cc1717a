"""The page of a board: a table for each dataset, sorted by the column that a reader chooses."""

import math
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

import numpy as np

from dualrs.report.accuracy import shown_radii
from dualrs.report.board.entry import Entry
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII, round_down

_FIRST = 0.5  # the radius that the tables are sorted by at first
_NONE = "–"


def write_board(entries: Sequence[Entry], *, title: str, command: str, version: str) -> str:
    """The page of some entries; those over other data stand in tables of their own."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.data, []).append(entry)
    return Template(_asset("board.html")).substitute(
        title=escape(title),
        tables="\n".join(_table(data, rows) for data, rows in groups.items()),
        version=escape(version),
        command=escape(command),
        style=resources.files("dualrs.report.page").joinpath("page.css").read_text("utf-8") + _asset("board.css"),
        script=_asset("board.js"),
    )


def _table(data: str, entries: Sequence[Entry]) -> str:
    known = [entry.accuracy for entry in entries if entry.accuracy is not None]
    shown = shown_radii([accuracy.tolist() for accuracy in known], RADII)
    vouched = [e.accuracy[:shown] for e in entries if e.accuracy is not None and e.guaranteed]
    best = np.max(vouched, axis=0) if vouched else np.zeros(shown)
    chosen = RADII.index(_FIRST) if RADII.index(_FIRST) < shown else 0
    radii = [f"{radius:g}" for radius in RADII[:shown]]
    names = ["model", "evidence", *radii, "ACR", "abstained", "inputs", "votes", "seconds"]
    heads = "".join(_head(name, name == radii[chosen]) for name in names)
    ranked = sorted(entries, key=lambda e: -math.inf if e.accuracy is None else float(e.accuracy[chosen]), reverse=True)
    rows = "\n".join(_row(entry, best) for entry in ranked)
    several = len({entry.inputs for entry in entries if not entry.problems}) > 1
    note = "<p>Rows over other inputs are not comparable to the point: see the column <i>inputs</i>.</p>" * several
    return (
        f'<section><h2>{escape(data)}</h2>{note}<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(data)}"><table class="headline board"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _head(name: str, sorted_by: bool) -> str:
    order = ' aria-sort="descending"' if sorted_by else ""
    return f'<th scope="col"{order}><button type="button">{escape(name)}</button></th>'


def _row(entry: Entry, best: Floats) -> str:
    vouched = entry.accuracy is not None and entry.guaranteed
    if entry.accuracy is None:
        cells = f'<td colspan="{len(best)}" data-value="-1">{escape(entry.problems[0])}</td>'
    else:
        accuracy = entry.accuracy[: len(best)]
        marks = [' class="best"' if vouched and a == b > 0 else "" for a, b in zip(accuracy, best, strict=True)]
        cells = "".join(
            f'<td{mark} data-value="{a}">{100 * a:.1f}</td>' for a, mark in zip(accuracy, marks, strict=True)
        )
    radius = _NONE if math.isnan(entry.acr) else round_down(entry.acr, 3)
    cells += _number(entry.acr, radius)
    cells += _number(entry.abstained, f"{100 * entry.abstained:.1f}")
    cells += _number(entry.inputs, f"{entry.inputs:,}")
    cells += _number(entry.votes, f"{entry.votes:,.0f}")
    cells += _number(entry.seconds, f"{entry.seconds:.3g}")
    evidence = escape(entry.evidence)
    name = f'<th scope="row" data-value="{escape(entry.title)}">{_about(entry)}</th>'
    kind = "" if vouched else ' class="bare"'
    return f'<tr{kind}>{name}<td data-value="{evidence}">{evidence}</td>{cells}</tr>'


def _number(value: float, shown: str) -> str:
    return f'<td data-value="-1">{_NONE}</td>' if math.isnan(value) else f'<td data-value="{value}">{shown}</td>'


def _about(entry: Entry) -> str:
    """The model's name, with everything else that is known of it behind it."""
    card = entry.card
    said = {
        "method": entry.method,
        "guarantee": entry.guarantee,
        "authors": card.authors,
        "venue": card.venue,
        "architecture": card.architecture,
        "training": card.training,
        "extra data": card.extra_data,
        **entry.about,
        "notes": card.notes,
        "problems": "; ".join(entry.problems),
    }
    lines = [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in said.items() if value]
    links = {"paper": card.paper, "code": card.code}
    lines += [
        f'<dt>{name}</dt><dd><a href="{escape(link)}" rel="noreferrer">{escape(link)}</a></dd>'
        for name, link in links.items()
        if link
    ]
    return f"<details><summary>{escape(entry.title)}</summary><dl>{''.join(lines)}</dl></details>"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
