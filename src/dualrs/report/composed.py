"""Composed: the certificates of ACES from the logs of its parts (Horvath et al. 2022; eth-sri/ACES).

Enters: the log of a selector, which names the certifier (1) or the core network (0) with a radius, the log of the
certifier, and that of the core network if there is one. Leaves: results, and what a reader has to know.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualrs.certificates import ABSTAIN
from dualrs.errors import BadTable
from dualrs.storage.peers import CORE, SELECTOR, Imported, read_table
from dualrs.storage.results import Results

TITLE = "ACES from the logs of its parts, as reported"
GUARANTEE = (
    "as its authors say: 1 - alpha for both radii together if each holds with 1 - alpha/2, as the script of ACES makes "
    "them; of logs made at alpha each, 1 - 2 alpha"
)
_BY_CORE, _BY_CERTIFIER = 0, 1
_ROLES = ("selector", "certifier", "core network")


def read_composed(paths: Sequence[Path]) -> Imported:
    """The results of a selector, a certifier and, if there is a third path, a core network: see `compose`."""
    if not 2 <= len(paths) <= 3:
        raise BadTable(
            f"{','.join(map(str, paths))}: these are {len(paths)} files, and those of one method are "
            "SELECTOR,CERTIFIER or SELECTOR,CERTIFIER,CORE"
        )
    selector, certifier = read_table(paths[0], SELECTOR), read_table(paths[1])
    odd = np.setdiff1d(selector.results.prediction, (ABSTAIN, _BY_CORE, _BY_CERTIFIER))
    if len(odd):
        raise BadTable(
            f"{paths[0]} predicts {odd[0]}, and a selector names 1, the certifier, or 0, the core network; it comes "
            "first, as SELECTOR,CERTIFIER,CORE"
        )
    core = read_table(paths[2], CORE) if len(paths) == 3 else None
    parts = [part for part in (selector, certifier, core) if part is not None]
    notes = [f"its {role}: {note}" for role, part in zip(_ROLES, parts, strict=False) for note in part.notes]
    inputs = certifier.results
    chosen = _on_inputs_of(inputs, selector.results, paths[1], paths[0])
    answered = None if core is None else _on_inputs_of(inputs, core.results, paths[1], paths[2])
    if answered is not None and (other := inputs.label != answered.label).any():
        row = int(np.flatnonzero(other)[0])
        raise BadTable(
            f"{paths[2]} gives input {inputs.index[row]} the label {answered.label[row]}, {paths[1]} the label "
            f"{inputs.label[row]}: these are other data, and {other.sum()} labels differ"
        )
    results = compose(chosen, inputs, answered)
    if core is None and (unknown := int((chosen.prediction == _BY_CORE).sum())):
        notes.append(f"{unknown} inputs go to the core network, of which there is no log: nothing is claimed of them")
    if lenient := int((chosen.abstained & inputs.correct & results.abstained).sum()):
        notes.append(
            f"{lenient} inputs, on which the selector abstains and the core network does not say what the certifier "
            "says, count as abstentions; the script of ACES counts them as right at radius 0"
        )
    return Imported(results, tuple(notes))


def compose(selector: Results, certifier: Results, core: Results | None) -> Results:
    """Results of the composed model on the same inputs in the same order.

    Where the selector names the certifier, the class is the certifier's and the radius the smaller of both. Where it
    names the core network, that one's class is claimed of the input alone; without its log nothing is. Where the
    selector abstains, a class is claimed of the input alone if certifier and core network agree on it.

    Guarantee: none of our own. If the selector's radius and the certifier's each hold with probability 1 - alpha/2,
    both hold with 1 - alpha, by the union bound and whatever their dependence; then no image closer than the smaller
    one has another choice, nor under that choice another class.
    Assumes: one threshold of the selector, fixed before its votes.
    """
    answer = np.full(len(certifier), ABSTAIN) if core is None else core.prediction
    agreed = np.where(certifier.prediction == answer, answer, ABSTAIN)
    chosen = selector.prediction == _BY_CERTIFIER
    prediction = np.where(selector.abstained, agreed, np.where(chosen, certifier.prediction, answer))
    radius = np.where(chosen & ~certifier.abstained, np.minimum(selector.radius, certifier.radius), 0.0)
    return replace(
        certifier,
        prediction=prediction,
        radius=radius,
        plain=(prediction != ABSTAIN) & (radius == 0),
    )


def _on_inputs_of(certifier: Results, part: Results, wanted: Path, path: Path) -> Results:
    """The rows of another log that are about the certifier's inputs, in their order."""
    place = {index: row for row, index in enumerate(part.index.tolist())}
    if lacks := [index for index in certifier.index.tolist() if index not in place]:
        raise BadTable(
            f"{path} is about other inputs than {wanted}: {len(lacks)} of them it lacks (the first is {lacks[0]}); "
            "give logs of the same inputs"
        )
    return part.rows(np.array([place[index] for index in certifier.index.tolist()], dtype=np.int64))
