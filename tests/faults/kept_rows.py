"""What two runs of one job must have in common, read without dualrs."""

import sqlite3
from contextlib import closing


def rows(path):
    """Inputs, votes and certificates of a ledger; not the seconds, nor the seals over them."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            "inputs": connection.execute("SELECT * FROM inputs ORDER BY id").fetchall(),
            "votes": connection.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall(),
            "certificates": [r[:8] + r[9:10] for r in connection.execute("SELECT * FROM certificates ORDER BY input")],
        }


def recorded(path):
    """How many rows of votes have been committed; None while there is no ledger. Never changes the file."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM votes").fetchone()[0]
    except sqlite3.OperationalError:  # not founded yet
        return None
