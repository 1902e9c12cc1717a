"""The command that says how far a run is, from another terminal."""

import time

from dualrs.cli.durations import duration
from dualrs.cli.ledgers import LedgerFile

_QUIET = 60.0  # seconds without a write, after which a run may have been stopped
_PATIENCE = 5.0  # seconds to wait for a write, to tell the speed by


def status(ledger: LedgerFile) -> None:
    """Say how far a run is, while it runs or after it was stopped: inputs done, votes, votes a second, time left.

    The ledger is only read, and nothing in it is checked; for that there is `dualrs verify`.
    """
    from dualrs.certificates import spell_seed
    from dualrs.storage import Ledger
    from dualrs.storage.status import last_written, standing, votes_left, votes_per_second

    with Ledger.open(ledger) as opened:
        run, now = opened.header, standing(opened)
        plan = f"n {run.n:,}" + (f" · n0 {run.n0:,}" if run.n0 else "") + (" · adaptive" if run.plan.adaptive else "")
        print(f"{run.contents} · {run.dataset} · {plan} · seed {spell_seed(run.seed)} · begun {run.created}")
        print(
            f"{now.done:,} of {now.inputs:,} inputs done ({now.done / max(now.inputs, 1):.1%}), {now.votes:,} votes",
            flush=True,  # what follows may take a while
        )
        if now.done == now.inputs:
            return
        silence = time.time() - last_written(ledger)
        rate = votes_per_second(opened, _PATIENCE) if silence < _QUIET else 0.0
    if rate:
        print(f"{rate:,.0f} votes/s, about {duration(votes_left(run, now) / rate)} left")
    elif silence < _QUIET:
        print(f"last written {duration(time.time() - last_written(ledger))} ago")
    else:
        print(f"nothing was written for {duration(silence)}; if it was stopped, go on with: {run.command}")
