"""Page: one or several ledgers as one HTML file that opens from disk and asks the network for nothing.

Enters: ledgers, and their images if they are at hand. Leaves: the text of the page: tables as markup, everything that
moves as JSON for the script beside this file. Curves are drawn by a few hundred lines of our own, since a plotting
library would weigh more than 500 inputs with their images.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from dualrs.certificates import spell_seed
from dualrs.report.accuracy import abstention, average_certified_radius, certified, certified_accuracy
from dualrs.report.diagnostics import FixedRadii
from dualrs.report.gallery import BY_CORE, FLAGS, LIMITED_BY_STAGE, Image, class_name, thumbnail, top_classes
from dualrs.report.methods import ENVELOPE, NO_METHOD, Derived, envelope, envelope_radii, fixed_sigmas, own_method
from dualrs.report.nearest import Nearest
from dualrs.report.page.run import Pictures, Run, read_run
from dualrs.storage.results import Results
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII, round_down

_DECIMALS = 4
_OF_SOME_KINDS = (BY_CORE, LIMITED_BY_STAGE)  # filters that most runs have no use for

Json = dict[str, Any]

__all__ = ["Pictures", "Run", "read_run", "write_page"]


def write_page(runs: Sequence[Run], pictures: Sequence[Pictures], *, command: str, version: str) -> str:
    """The page of some runs with their pictures, in the same order."""
    names = ", ".join(run.name for run in runs)
    images = _Images()
    rare = {flag for run in runs for why in run.whys for flag in why.flags if flag in _OF_SOME_KINDS}
    content = {
        "flags": [flag for flag in FLAGS if flag not in _OF_SOME_KINDS or flag in rare],
        "runs": [_run(run, shown, images) for run, shown in zip(runs, pictures, strict=True)],
        "images": images.packed,
    }
    return Template(_asset("page.html")).substitute(
        title=escape(f"Certified robustness: {names}"),
        subtitle="<br>".join(escape(line) for run in runs for line in _subtitle(run, len(runs) > 1)),
        marked=_MARKED,
        headline=_headline(runs),
        guarantees=_guarantees(runs),
        runs="\n".join(_header(run) for run in runs),
        version=escape(version),
        command=escape(command),
        style=_asset("page.css"),
        script=_asset("page.js"),
        # `<` could end the script element that holds the data
        data=json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    )


# Tables


_MARKED = (
    'The best of a column is marked <span class="best">so</span> among runs over the same inputs; methods in italics '
    "are no certificates."
)


def _headline(runs: Sequence[Run]) -> str:
    """Accuracy at radii, abstention, ACR and votes of every method; the best certificate of each column marked."""
    best = {run: np.zeros(len(RADII)) for run in runs}
    for run in runs:
        for other in runs:
            if other.inputs == run.inputs:
                tables = [
                    certified_accuracy(m.results) for m in other.methods.values() if m.guaranteed and _labelled(m)
                ]
                best[run] = np.max([best[run], *tables], axis=0)
    reached = min(int(np.max([(b > 0).sum() for b in best.values()])) + 1, len(RADII))  # one column of zeros ends it
    cells = "".join(f'<th scope="col">{radius:g}</th>' for radius in RADII[:reached])
    more = '<th scope="col" class="gap">abstained</th><th scope="col">ACR</th><th scope="col">votes</th>'
    lines = [
        '<table class="headline"><thead>',
        f'<tr><th scope="col">method</th>{cells}{more}</tr></thead><tbody>',
    ]
    for run in runs:
        if len(runs) > 1:
            lines.append(
                f'<tr class="group"><th scope="rowgroup">{escape(run.name)}</th><td colspan="{reached + 3}"></td></tr>'
            )
        lines += [_row(method, best[run][:reached]) for method in run.methods.values()]
        if len(fixed := _fixed(run)) > 1:
            cells = "".join(f"<td>{100 * a:.1f}</td>" for a in envelope(fixed)[:reached])
            rest = '<td class="gap">–</td><td>–</td><td>–</td>'
            lines.append(f'<tr class=bare><th scope="row">{escape(ENVELOPE)}</th>{cells}{rest}</tr>')
    return "\n".join([*lines, "</tbody></table>"])


def _row(method: Derived, best: Floats) -> str:
    results, certifies = method.results, method.guaranteed
    cells, acr = f'<td colspan="{len(best)}">no labels</td>', "–"
    if _labelled(method):
        accuracy = certified_accuracy(results)[: len(best)]
        marks = [' class="best"' if certifies and a == b > 0 else "" for a, b in zip(accuracy, best, strict=True)]
        cells = "".join(f"<td{mark}>{100 * a:.1f}</td>" for a, mark in zip(accuracy, marks, strict=True))
        acr = round_down(average_certified_radius(results), 3)
    votes = f"{method.votes_per_input.mean():,.0f}" if len(method.votes_per_input) else "–"
    return (
        f'<tr{"" if certifies else " class=bare"}><th scope="row">{escape(method.title)}</th>{cells}'
        f'<td class="gap">{100 * abstention(results):.1f}</td><td>{acr}</td><td>{votes}</td></tr>'
    )


def _guarantees(runs: Sequence[Run]) -> str:
    found = dict.fromkeys((method.title, method.guarantee) for run in runs for method in run.methods.values())
    if any(len(_fixed(run)) > 1 for run in runs):
        found[ENVELOPE, NO_METHOD] = None
    return _definitions((escape(title), escape(sentence)) for title, sentence in found)


def _header(run: Run) -> str:
    """The header of a run, its command first."""
    fields = json.loads(run.header.to_json())
    command, models = fields.pop("command"), fields.pop("models")
    if "tuned" in fields:
        del fields["tuned"]["inputs"]  # a hash for each
    fields |= {f"network {name}": digest for name, digest in models.items()}
    rows = _definitions((escape(name.replace("_", " ")), escape(_plain(value))) for name, value in fields.items())
    return (
        f"<details><summary><strong>{escape(run.name)}</strong>: {escape(run.header.contents)}</summary>"
        f"<p>Made by</p><pre>{escape(command)}</pre>{rows}</details>"
    )


def _definitions(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows) + "</dl>"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)


def _subtitle(run: Run, several: bool) -> Iterator[str]:
    """What the run is, and a line for each method with a note."""
    header = run.header
    text = (
        f"{header.dataset}, {len(run.whys):,} inputs · rule {header.rule} · alpha {header.alpha:g} · {header.amount} "
        f"· seed {spell_seed(header.seed)}"
    )
    name = f"{run.name}: " if several else ""
    yield f"{name}{text}"
    yield from [f"{name}{header.second_look}"] if header.earlier else []
    yield from (f"{name}{method.title}: {method.note}" for method in run.methods.values() if method.note)


def _labelled(method: Derived) -> bool:
    return bool(method.results.labelled.all())


def _fixed(run: Run) -> list[Results]:
    """The fixed sigmas of a run, of which the envelope is made."""
    return [results for results in fixed_sigmas(run.methods.values()) if results.labelled.all()]


# What the script reads


class _Images:
    """PNGs as text, each once, as runs over the same data share them."""

    def __init__(self) -> None:
        self.packed: list[str] = []
        self._places: dict[bytes, int] = {}

    def place(self, image: Image) -> int:
        """Where an image is in the list."""
        packed = thumbnail(image)
        if packed not in self._places:
            self._places[packed] = len(self.packed)
            self.packed.append(base64.b64encode(packed).decode())
        return self._places[packed]


def _run(run: Run, shown: Pictures, images: _Images) -> Json:
    scheme, notes = run.header.scheme, [shown.note] if shown.note else []
    if run.step > 1:
        notes.append(f"One of {run.step} inputs is here; `dualrs why` shows any of them.")
    return {
        "name": run.name,
        "inputs": len(run.whys),
        "classes": None if shown.names is None else list(shown.names),
        "router": f"{scheme.router_name.capitalize()} votes at sigma {scheme.router_sigma}",
        "routes": scheme.route_names,
        "curves": [*_curves(run)],
        "diagnostics": {
            "best": None if run.fixed is None else _best(run.fixed),
            "regret": None if run.fixed is None else _rising(run.fixed.regret),
            "slack": None if run.slack is None else _rising(run.slack),
            "p_a": _rising(run.p_a),
            "notes": run.notes,
        },
        "gallery": [_input(run, i, shown, images) for i in range(0, len(run.whys), run.step)],
        "gallery_notes": notes,
    }


def _curves(run: Run) -> Iterator[Json]:
    """For each method the radii that it certifies, rising; at radius 0 what is claimed of the input alone."""
    for method in filter(_labelled, run.methods.values()):
        results = method.results
        counted = results.radius[certified(results, [0.0])[0]]
        yield {"title": method.title, "own": method.name == own_method(run.header), "radii": _cut(np.sort(counted))}
    if len(fixed := _fixed(run)) > 1:
        yield {"title": ENVELOPE, "own": False, "radii": _cut(envelope_radii(fixed))}


def _cut(radii: Floats) -> list[float]:
    """Rounded down, a radius reaches any r of as many decimals just if it did before."""
    return [float(round_down(r, _DECIMALS)) for r in radii.tolist()]


def _best(fixed: FixedRadii) -> list[tuple[str, int]]:
    counts = fixed.best_counts.tolist()
    named = [(f"sigma {sigma:g}", count) for sigma, count in zip(fixed.sigmas, counts, strict=True)]
    return [*named, ("none", len(fixed.radii) - sum(counts))]


def _rising(values: Floats) -> list[float]:
    return [round(v, 6) for v in np.sort(values).tolist()]


def _input(run: Run, i: int, shown: Pictures, images: _Images) -> Json:
    why = run.whys[i]
    image = shown.images.get(why.id)
    return {
        "id": why.id,
        "index": why.index,
        "label": why.label,
        "selected": why.seen.selected,
        "radius": round_down(why.certificate.radius, _DECIMALS),
        "sigma": why.certificate.sigma_c,
        "sigmas": why.scheme.sigmas_of(why.certificate),
        "outcome": why.certificate.outcome.value,
        "flags": why.flags,
        "reason": why.reason(shown.names),
        "radii": [(name, round_down(radius, _DECIMALS)) for name, radius in why.radii().items()],
        "methods": {
            method.name: (int(method.results.prediction[i]), round_down(float(method.results.radius[i]), _DECIMALS))
            for method in run.methods.values()
        },
        "router": None if why.seen.router is None else why.seen.router.tolist(),
        "votes": [
            None if counts is None else top_classes(counts, shown.names, why.scheme.classes)
            for counts in why.seen.experts
        ],
        "core": None if why.core is None else class_name(why.core, shown.names),
        "image": None if image is None else images.place(image),
        "attacks": [_attack(found, image, shown, images) for found in run.attacks.get(why.id, ())],
    }


def _attack(found: Nearest, attacked: Image | None, shown: Pictures, images: _Images) -> Json:
    """What an attack found; its image only where that which was attacked is at hand."""
    row, difference = found.attack, found.difference()
    image = None if attacked is None else found.image(attacked)
    return {
        "method": found.method,
        "said": found.said(shown.names),
        "radius": round_down(row.radius, _DECIMALS),
        "upper": None if row.upper is None else found.upper,
        "reach": found.reach,
        "answer": None if row.upper is None else class_name(row.answer, shown.names),
        "image": None if image is None else images.place(image),
        "difference": None if difference is None else images.place(difference[0]),
        "times": None if difference is None else difference[1],
    }


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
