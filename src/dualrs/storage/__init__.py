"""What is kept of a run, and what is read of other people's: ledgers, exports, result tables; without torch."""

from dualrs.storage.exports import write, write_columns
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.peers import read_table
from dualrs.storage.results import UNLABELLED, Results, derive
from dualrs.storage.verify import verify

__all__ = ["UNLABELLED", "Header", "Ledger", "Results", "derive", "read_table", "verify", "write", "write_columns"]
