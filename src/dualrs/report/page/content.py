"""Content: what the script of the page reads, as plain values for JSON.

Enters: runs with their pictures. Leaves: votes, labels, names and images. Radii are not among it, but for those of
methods without votes, and of runs whose rules the script does not know: others it works out, at any settings.
"""

import base64
import math
from collections.abc import Sequence
from typing import Any

from dualrs.report.gallery import FLAGS, Copies, Image, Why, class_name, thumbnail
from dualrs.report.methods import ENVELOPE, NO_METHOD, Derived, own_method
from dualrs.report.nearest import Nearest
from dualrs.report.page.run import Pictures, Run
from dualrs.schemes import ORACLE
from dualrs.theory.radius import RADII

Json = dict[str, Any]


def content(runs: Sequence[Run], pictures: Sequence[Pictures]) -> Json:
    """All that moves on the page."""
    images = _Images()
    return {
        "flags": FLAGS,
        "radii": RADII,
        "envelope": {"title": ENVELOPE, "guarantee": NO_METHOD},
        "runs": [_run(run, shown, images) for run, shown in zip(runs, pictures, strict=True)],
        "images": images.packed,
    }


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
    header, scheme = run.header, run.header.scheme
    notes = [shown.note] if shown.note else []
    if run.step > 1:
        notes.append(f"One of {run.step} inputs is here; `dualrs why` shows any of them.")
    return {
        "name": run.name,
        "kind": scheme.name,
        "rule": own_method(header),
        "alpha": header.alpha,
        "n0": header.n0,
        "adaptive": header.plan.adaptive,
        "second_look": header.second_look if header.earlier else "",
        "settled": run.settled,
        "sigmas": scheme.sigmas,
        "candidates": getattr(scheme, "candidates", scheme.sigmas),
        "class_count": scheme.classes,
        "confidences": getattr(scheme, "confidences", ()),
        "thresholds": getattr(scheme, "thresholds", ()),
        "router_name": scheme.router_name,
        "route_names": scheme.route_names,
        "classes": None if shown.names is None else list(shown.names),
        "data": header.dataset_fingerprint,
        "ids": [why.id for why in run.whys],
        "index": [why.index for why in run.whys],
        "label": [-2 if why.label is None else why.label for why in run.whys],
        "votes": run.votes,
        "methods": [_method(method, bool(run.settled)) for method in run.methods.values()],
        "notes": run.notes,
        "gallery": [_input(run, i, shown, images) for i in range(0, len(run.whys), run.step)],
        "gallery_notes": notes,
    }


def _method(method: Derived, settled: bool) -> Json:
    """What a method is called and promises; its results only where the script cannot derive them from votes."""
    results, derived = method.results, not settled and (method.certificates is not None or method.name == ORACLE)
    columns = [results.prediction.tolist(), results.radius.tolist()]
    if method.certificates is not None:
        claims = method.certificates
        columns += [claims.sigma_c.tolist(), claims.limited_by.tolist(), claims.outcome.tolist()]
    return {
        "name": method.name,
        "title": method.title,
        "guarantee": method.guarantee,
        "guaranteed": method.guaranteed,
        "note": method.note,
        "sigma": method.sigma,
        "votes": round(float(method.votes_per_input.mean())) if len(method.votes_per_input) else None,
        "fixed": None if derived else [*zip(*columns, strict=True)],
    }


def _input(run: Run, i: int, shown: Pictures, images: _Images) -> Json:
    why = run.whys[i]
    image = shown.images.get(why.id)
    return {
        "number": i,
        "image": None if image is None else images.place(image),
        "told": _told(why, shown) if run.settled else None,
        "copies": _copies(why, shown.copies.get(why.id), images),
        "attacks": [_attack(found, image, shown, images) for found in run.attacks.get(why.id, ())],
    }


def _told(why: Why, shown: Pictures) -> Json:
    """What is said of an input where the script cannot find the words, because it does not know the rule."""
    terms = {"class": why.certificate.r_c, why.scheme.before: why.certificate.r_sigma}
    return {
        "reason": why.reason(shown.names),
        "flags": why.flags,
        "sigmas": why.scheme.sigmas_of(why.certificate),
        "radii": [*why.radii().items()],
        "terms": [(name, radius) for name, radius in terms.items() if math.isfinite(radius)],
    }


def _copies(why: Why, copies: Copies | None, images: _Images) -> list[Json]:
    """What the expert of each sigma saw; nothing where that was not drawn again."""
    if copies is None:
        return []
    sigmas = why.scheme.sigmas_of(why.certificate)
    first = len(copies.noisy) - len(sigmas)  # before them stands the router, if there is one
    return [
        {"sigma": sigma, "noisy": images.place(noisy), "denoised": None if clean is None else images.place(clean)}
        for sigma, noisy, clean in zip(sigmas, copies.noisy[first:], copies.denoised[first:], strict=True)
        if noisy is not None
    ]


def _attack(found: Nearest, attacked: Image | None, shown: Pictures, images: _Images) -> Json:
    """What an attack found; its image only where that which was attacked is at hand."""
    row, difference = found.attack, found.difference()
    image = None if attacked is None else found.image(attacked)
    return {
        "method": found.method,
        "said": found.said(shown.names),
        "radius": row.radius,
        "upper": None if row.upper is None else found.upper,
        "reach": found.reach,
        "answer": None if row.upper is None else class_name(row.answer, shown.names),
        "image": None if image is None else images.place(image),
        "difference": None if difference is None else images.place(difference[0]),
        "times": None if difference is None else difference[1],
    }
