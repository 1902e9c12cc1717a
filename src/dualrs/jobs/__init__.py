"""Jobs: certify, label or assign a dataset into a ledger, resuming where an earlier run was cut off.

Enters: smoothed models, a dataset, file names. Leaves: ledgers, complete for the inputs asked for.
"""

from dualrs.jobs.certify import Certification, certify_dataset, certify_together
from dualrs.jobs.redraw import redraw
from dualrs.jobs.teach import assign_dataset, label_dataset

__all__ = ["Certification", "assign_dataset", "certify_dataset", "certify_together", "label_dataset", "redraw"]
