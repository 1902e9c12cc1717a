"""Board: many runs on one page, a row each, with what vouches for its numbers.

Enters: ledgers, and result tables of others, each with a card if there is one beside it. Leaves: the text of the page.
"""

from dualrs.report.board.card import TEMPLATE, EntryCard, read_card
from dualrs.report.board.entry import Entry, of_ledger, of_table
from dualrs.report.board.page import write_board

__all__ = ["TEMPLATE", "Entry", "EntryCard", "of_ledger", "of_table", "read_card", "write_board"]
