"""The card of a model on a hub: what it is, what it certifies and by which votes, and under which licence it is given.

Enters: a model and ledgers of it. Leaves: Markdown with the front matter that the hub reads.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from dualrs.certificates import spell_seed
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs.opening import fingerprints
from dualrs.report.summary import summarize
from dualrs.smoothed import DualSmoothed, SmoothedModel
from dualrs.storage import Ledger, derive
from dualrs.theory.radius import RADII
from dualrs.version import __version__

_TAGS = ("certified-robustness", "randomized-smoothing")


def written(name: str, model: SmoothedModel, licence: str, ledgers: Sequence[Path]) -> str:
    """The whole card."""
    if not licence.strip() or "\n" in licence:
        raise BadSetting("say in one word under which licence the model is given, such as apache-2.0 or cc-by-4.0")
    results = [line for ledger in ledgers for line in _results(model, ledger)]
    nothing = ["No run was given with it; `dualrs certify --model FOLDER --data DATA -o run.ledger` makes one."]
    return "\n".join([*_front(licence), *_what(name, model), "## Certified accuracy", "", *(results or nothing), ""])


def _front(licence: str) -> Iterator[str]:
    yield "---"
    yield f"license: {json.dumps(licence)}"
    yield "library_name: dualrs"
    yield "pipeline_tag: image-classification"
    yield f"tags: {json.dumps(_TAGS)}"
    yield "---"


def _what(name: str, model: SmoothedModel) -> Iterator[str]:
    kind, sigmas = type(model).__name__, ", ".join(f"{sigma:g}" for sigma in model.sigmas)
    networks = "a classifier" if len(set(model.models.values())) <= 2 else "experts"
    router = f"; a router at sigma_e {model.sigma_e:g} chooses among them" if isinstance(model, DualSmoothed) else ""
    yield f"# {name}"
    yield ""
    yield f"{networks.capitalize()}, smoothed at sigma {sigmas}{router}: certified against L2 perturbations of images,"
    yield f"in pixel units of [0, 1]. Made with dualrs {__version__}."
    yield ""
    yield "```python"
    yield f"from dualrs import {kind}"
    yield ""
    yield f"model = {kind}.from_pretrained({json.dumps(name)})"
    yield "print(model.certify(images, n=10_000))  # uint8, or float in [0, 1]"
    yield "```"
    yield "For every input, the probability over the noise that a certificate is issued and is false is at most alpha."
    yield "It is false if some image closer than the radius is given another class by the exact smoothed predictor."
    yield "Weights are safetensors; nothing in this repository is run as code."
    yield ""


def _results(model: SmoothedModel, path: Path) -> Iterator[str]:
    """A table of a run of this very model, and what it rests on."""
    with Ledger.open(path) as ledger:
        run = ledger.header
        if not run.certifies or run.scheme.name != model.kind.name or run.models != fingerprints(model):
            raise ForeignLedger(
                f"{path} is not a run of this model, {type(model).__name__} at {model.sigmas}; leave it out"
            )
        results, certificates = derive(ledger)
    found = summarize(results, certificates, RADII)
    if found.accuracy is not None:
        shown = [i for i, accuracy in enumerate(found.accuracy) if accuracy > 0] or [0]
        radii, accuracies = found.radii[: shown[-1] + 1], found.accuracy[: shown[-1] + 1]
        yield f"| L2 radius | {' | '.join(f'{radius:g}' for radius in radii)} |"
        yield f"|---|{'---:|' * len(radii)}"
        yield f"| accuracy (%) | {' | '.join(f'{100 * accuracy:.1f}' for accuracy in accuracies)} |"
        yield ""
    yield f"{run.dataset}, {found.inputs:,} inputs, {100 * found.abstention:.1f} % abstained. Rule {run.rule}, alpha"
    yield f"{run.alpha:g}, {run.amount}, seed {spell_seed(run.seed)}. Guarantee: {run.own_rule.guarantee(run.alpha)}."
    yield f"Ledger `{path.name}`, SHA-256 `{hashlib.sha256(path.read_bytes()).hexdigest()}`."
    yield from [f"Note: {run.second_look}."] if run.earlier else []
    yield ""
