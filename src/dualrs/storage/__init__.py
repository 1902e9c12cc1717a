"""What is kept of a run, and what is read of other people's: ledgers, exports, result tables; without torch."""

from dualrs.storage.exports import write
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.peers import Imported, read_tsv
from dualrs.storage.results import UNLABELLED, Results, derive
from dualrs.storage.rows import Concluded, InputRow
from dualrs.storage.verify import verify

__all__ = [
    "UNLABELLED",
    "Concluded",
    "Header",
    "Imported",
    "InputRow",
    "Ledger",
    "Results",
    "derive",
    "read_tsv",
    "verify",
    "write",
]
