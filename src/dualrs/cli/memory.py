"""The command memory: what a run certifies if later inputs are treated as earlier ones nearby were."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from dualrs.cli.ledgers import LedgerFile
from dualrs.cli.options import Images
from dualrs.cli.sets import spread_out
from dualrs.errors import BadData


class By(StrEnum):
    """What later inputs take from a ball."""

    CLASS = "class"
    SIGMA = "sigma"


@spread_out
def memory(
    ledger: LedgerFile,
    by: Annotated[
        By,
        Option(
            help="What later inputs in a ball take from it: its class (Alfarra et al.), or its sigma, of a run with "
            "--sigmas and --all-votes (our reading of Wang et al.)."
        ),
    ] = By.CLASS,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Also write the table: .tsv, which `dualrs compare` reads, .csv or .parquet."),
    ] = None,
    *,
    data: Images,
) -> None:
    """Certify with a memory: each input gets a ball in which those that come later are treated alike.

    Inputs come in the order of their positions. Read what is guaranteed, below the table: nothing is claimed of
    inputs that came before, so an attack that is asked before its image is certified like the image.

    Example: `dualrs certify --ascent ... -o run.ledger`, then `dualrs memory run.ledger -o remembered.tsv`
    """
    from dualrs.cli.pictures import open_data
    from dualrs.cli.tables import print_notes, print_summary
    from dualrs.report.memory import GUARANTEES, remembered
    from dualrs.report.summary import summarize
    from dualrs.storage import Ledger
    from dualrs.storage.exports import write
    from dualrs.theory.radius import RADII

    with Ledger.open(ledger) as opened:
        run = opened.header
        dataset, note = open_data(run, data.given())
        if dataset is None:
            raise BadData(f"a memory compares images, and there are none. {note}")
        results, certificates, turned = remembered(opened, by.value, dataset.image)
    rule = run.rule if by is By.CLASS else "cohen"
    title = f"{run.dataset} · rule {rule}, with a memory of each {by.value} · alpha {run.alpha:g} · {run.amount}"
    print_summary(summarize(results, certificates, RADII), title)
    print_notes([
        f"guarantee: {GUARANTEES[by.value].format(alpha=run.alpha)}",
        f"in the opposite order, {len(turned)} of {len(results)} inputs get another class"
        + (f" (the first is {turned[0]})" if turned else ""),
    ])  # fmt: skip
    if output is not None:
        write(results, output)
        print(f"wrote {output}")
