"""The command flips: certificates in a table against predictions on attacked images in others."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option


def flips(
    certificates: Annotated[
        Path,
        Argument(help="A table of certificates, of another project or exported: .tsv or .csv.", show_default=False),
    ],
    predictions: Annotated[
        list[Path],
        Argument(help="Tables of predictions on attacked images (idx, label, predict, ...).", show_default=False),
    ],
    radius: Annotated[float, Option(min=0.0, help="The L2 size of the attack.", show_default=False)],
    alpha: Annotated[
        float, Option(min=0.0, max=1.0, help="With which probability a certificate, and a prediction, may be wrong.")
    ] = 0.001,
) -> None:
    """Check certificates against predictions on attacked images that another project published.

    A prediction with another class contradicts a certificate whose radius is larger than the attack; an abstention does
    not. By chance, a certificate is contradicted with probability alpha times one more than there are tables of
    predictions at most. The command says how likely so many are, and exits with code 1 if chance does not explain them.

    The tables must be about the same smoothed model: the same network and the same sigma.

    Example: `dualrs flips sigma_0.25.tsv PGD_0.250/*/predictions --radius 0.25`
    """
    from dualrs.report.flips import compare_predictions
    from dualrs.storage import read_table
    from dualrs.storage.attacks import UNLIKELY

    found = compare_predictions(read_table(certificates).results, predictions, radius, alpha)
    print(f"{certificates} at {radius:g}: {found}")
    if found.chance < UNLIKELY:
        shown = ", ".join(map(str, found.flipped[:10])) + (", ..." if len(found.flipped) > 10 else "")
        print(f"so many are not chance: idx {shown}; tables of different models, or a wrong certificate")
        raise Exit(1)
