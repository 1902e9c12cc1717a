"""The command that shows the page of a run in a browser while the run goes on."""

from typing import Annotated

from typer import Option

from dualrs.cli.ledgers import LedgerFile
from dualrs.cli.options import Images, this_command
from dualrs.cli.sets import spread_out


@spread_out
def watch(
    ledger: LedgerFile,
    port: Annotated[int, Option(min=0, max=65535, help="Of this machine; 0 takes one that is free.")] = 8765,
    *,
    data: Images,
) -> None:
    """Watch a run in a browser while it goes on: how far it is, and the page of the inputs that are finished.

    The page is that of `dualrs report`, made again as inputs finish. It is served to this machine alone, and the ledger
    is only read. Stop it with Ctrl-C; the run goes on.

    Example: `dualrs watch runs/quickstart.ledger`
    """
    from dualrs.cli.report import page_of
    from dualrs.report.watch import HOST, server
    from dualrs.storage import Ledger
    from dualrs.storage.results import demand_certificates

    with Ledger.open(ledger) as opened:
        demand_certificates(opened)
    command, given = this_command(), data.given()
    with server(ledger, lambda: page_of([str(ledger)], given, command), port) as serving:
        print(
            f"watching {ledger} at http://{HOST}:{serving.server_port} (Ctrl-C stops watching; the run goes on)",
            flush=True,
        )
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print("stopped watching")
