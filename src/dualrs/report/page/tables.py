"""Tables of the page as markup: certified accuracy for whoever reads it without a script, guarantees, and headers.

Enters: runs. Leaves: HTML; what comes from outside is escaped.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np

from dualrs.certificates import spell_seed
from dualrs.report.accuracy import abstention, average_certified_radius, certified_accuracy
from dualrs.report.methods import ENVELOPE, NO_METHOD, Derived, envelope, fixed_sigmas
from dualrs.report.page.run import Run
from dualrs.storage.results import Results
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import RADII, round_down

_NAMED = 10  # classes of a header that are named


def headline(runs: Sequence[Run]) -> str:
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


def guarantees(runs: Sequence[Run]) -> str:
    """What each method promises."""
    found = dict.fromkeys((method.title, method.guarantee) for run in runs for method in run.methods.values())
    if any(len(_fixed(run)) > 1 for run in runs):
        found[ENVELOPE, NO_METHOD] = None
    return _definitions((escape(title), escape(sentence)) for title, sentence in found)


def header(run: Run) -> str:
    """The header of a run, its command first."""
    fields = json.loads(run.header.to_json())
    command, models = fields.pop("command"), fields.pop("models")
    if "tuned" in fields:
        del fields["tuned"]["inputs"]  # a hash for each
    if len(names := fields.get("class_names", ())) > _NAMED:
        fields["class_names"] = [*names[:_NAMED], f"and {len(names) - _NAMED:,} more"]
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


def subtitle(run: Run, several: bool) -> Iterator[str]:
    """What the run is, and a line for each method with a note."""
    about = run.header
    text = (
        f"{about.dataset}, {len(run.whys):,} inputs · rule {about.rule} · alpha {about.alpha:g} · {about.amount} "
        f"· seed {spell_seed(about.seed)}"
    )
    name = f"{run.name}: " if several else ""
    yield f"{name}{text}"
    yield from [f"{name}{about.second_look}"] if about.earlier else []
    yield from (f"{name}{method.title}: {method.note}" for method in run.methods.values() if method.note)


def _labelled(method: Derived) -> bool:
    return bool(method.results.labelled.all())


def _fixed(run: Run) -> list[Results]:
    """The fixed sigmas of a run, of which the envelope is made."""
    return [results for results in fixed_sigmas(run.methods.values()) if results.labelled.all()]
