"""Notes about a peer's table: what its `correct` column really is, and whether its radii were rounded.

Enters: columns as they were read. Leaves: sentences for the reader, none if all is as it should be.
"""

import math

import numpy as np
from numpy.typing import NDArray

DIGITS = 3  # what the widespread format "{:.3}" leaves of a radius

_UNUSED = "it is not used: a prediction counts as correct where it equals the label"


def note_correct(column: NDArray[np.float64], truth: NDArray[np.bool_]) -> list[str]:
    """Say what a `correct` column holds where it is not prediction == label; NaN cells say nothing."""
    known = ~np.isnan(column)
    column, truth = column[known], truth[known]
    if np.array_equal(column, truth):
        return []
    running = np.cumsum(truth)
    whole = bool((column == np.round(column)).all())
    within = column.min() >= 0 and column.max() <= 1
    if np.array_equal(column, running) or (whole and not within and _counts_up(column)):
        what = "holds a running total, not 0 or 1"
    elif not whole and within:
        exact = np.allclose(column, running / np.arange(1, len(column) + 1), rtol=0, atol=0.01)
        what = f"{'holds' if exact else 'seems to hold'} a running accuracy, not 0 or 1"
    elif whole and within:
        wrong = int((column != truth).sum())
        what = f"disagrees with predict == label in {wrong} of {len(column)} rows"
    else:
        what = "holds values other than 0 and 1"
    return [f"column correct {what}; {_UNUSED}"]


def _counts_up(column: NDArray[np.float64]) -> bool:
    """Whether each value is the last one or one more; a fall is where the next of several files began."""
    steps = np.diff(column)
    return bool(((steps == 0) | (steps == 1) | (steps < 0)).all())


def note_predictions(undecided: NDArray[np.bool_]) -> list[str]:
    """Say how many rows are Multiscale's kind of abstention."""
    return [f"{undecided.sum()} rows have predict -2, undecided: they count as abstentions"] if undecided.any() else []


def note_radii(radii: NDArray[np.float64], named: NDArray[np.bool_]) -> list[str]:
    """Say how many rows that name a class have a radius which no votes can give, or below zero."""
    notes = []
    if endless := int((named & (radii == math.inf)).sum()):
        notes.append(f"{endless} rows have an infinite radius, which no votes can prove: it is taken as 0")
    if negative := int((named & (radii < 0)).sum()):
        notes.append(
            f"{negative} rows name a class with a negative radius, as tables about other norms have them: they certify "
            "nothing here"
        )
    return notes


def note_rounding(radii: list[str]) -> list[str]:
    """Say by how much radii may exceed what was certified, if none has more than three significant digits."""
    positive = [text for text in radii if float(text) > 0]
    if not positive or any(_significant_digits(text) > DIGITS for text in positive):
        return []
    half_unit = max(10.0 ** (math.floor(math.log10(float(text))) - DIGITS + 1) / 2 for text in positive)
    return [
        f"radii have at most {DIGITS} significant digits: they may be rounded up by up to half a unit of the last "
        f"digit, here {half_unit:g}"
    ]


def _significant_digits(text: str) -> int:
    mantissa = text.lower().split("e")[0]
    return len(mantissa.lstrip("+-").replace(".", "").lstrip("0"))
