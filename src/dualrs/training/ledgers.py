"""Ledgers that training reads: opened beside the dataset that they are about."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualrs.data.classes import numbered_as
from dualrs.data.dataset import Dataset
from dualrs.errors import BadData
from dualrs.storage.ledger import Ledger


@contextmanager
def ledger_about(path: Path, dataset: Dataset) -> Iterator[Ledger]:
    """Open a ledger for reading; one that was made from other data is refused."""
    with Ledger.open(path) as ledger:
        if ledger.header.dataset_fingerprint != numbered_as(dataset, ledger.header.class_names).fingerprint:
            raise BadData(
                f"{path} is about {ledger.header.dataset}, and {dataset.name} is another dataset; give the same"
            )
        yield ledger
