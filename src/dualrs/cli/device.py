"""Where the networks of a command run if nobody says: on a GPU where there is one."""

import sys
from pathlib import Path


def chosen_device(asked: str | None, *ledgers: Path) -> str:
    """The device that is asked for, else that of a run which a ledger goes on with, else a GPU, which a line names.

    This process is made ready to run networks.
    """
    from dualrs.models import hardware

    hardware.keep_memory()
    if asked is not None:
        return asked
    from dualrs.storage import Ledger
    from dualrs.training.processes import is_main

    for header in filter(None, map(Ledger.header_of, ledgers)):
        return header.device
    found = hardware.best_device()
    if found != "cpu" and is_main():
        print(f"networks run on {found}, the GPU of this machine; --device cpu takes the processor", file=sys.stderr)
    return found
