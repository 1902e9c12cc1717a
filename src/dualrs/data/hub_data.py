"""Datasets of the Hugging Face hub, or those that ``save_to_disk`` wrote to a folder.

Enters: an id or a folder, and a split. Leaves: its images, decoded when they are asked for, with labels. No code that
comes with a dataset is run.
"""

from pathlib import Path
from typing import Any

from dualrs.data.encoded import EncodedImages, Preprocessing
from dualrs.errors import BadData, BadImage, Unreachable, first_line
from dualrs.extras import need

PATIENCE = 5.0  # seconds for the hub's first answer; loading itself would retry for half a minute
_PURPOSE = "a dataset of the hub"


class HubDataset(EncodedImages):
    """One split of a dataset that has one column of images; labels are its one column of classes, if it has any.

    A ``source`` that is a folder is read without any network; another one is an id. Ids of images are ``split/row``.
    """

    def __init__(self, source: str | Path, split: str, resize: int | None = None, crop: int | None = None) -> None:
        preprocessing = Preprocessing(resize, crop)
        folder = Path(source).expanduser()
        table = _from_folder(folder, split) if folder.is_dir() else _from_hub(str(source), split)
        name = f"{folder.resolve().name if folder.is_dir() else source}/{split}"
        if not len(table):
            raise BadData(f"{name} is empty; choose another split")
        self._column = _image_column(table.features, name)
        labels, classes = _labels(table, name)
        encoded = need("datasets", "hub", _PURPOSE).Image(decode=False)
        self._table = table.select_columns([self._column]).cast_column(self._column, encoded)
        super().__init__(name, [f"{split}/{row}" for row in range(len(table))], labels, classes, preprocessing)

    def content(self, index: int) -> bytes:
        """The bytes of one image: in the table, or in a file to which it points."""
        try:
            cell = self._table[index][self._column]
            return bytes(cell["bytes"]) if cell["bytes"] is not None else Path(cell["path"]).read_bytes()
        except Exception as error:  # of the table, of the file, or because the cell is empty
            raise BadImage(f"cannot read the image {self.ids[index]} of {self.name}: {first_line(error)}") from error


def _from_folder(folder: Path, split: str) -> Any:
    datasets = need("datasets", "hub", _PURPOSE)
    try:
        found = datasets.load_from_disk(folder)
    except Exception as error:  # whatever datasets, pyarrow or json make of a bad folder
        raise BadData(f"{folder} does not hold a dataset as save_to_disk writes it: {first_line(error)}") from error
    splits = found if isinstance(found, dict) else {str(found.split or split): found}
    if split not in splits:
        raise BadData(f"{folder} has no split {split!r}; it has {', '.join(splits)}")
    return splits[split]


def _from_hub(source: str, split: str) -> Any:
    datasets, hub = need("datasets", "hub", _PURPOSE), need("huggingface_hub", "hub", _PURPOSE)
    advice = "check the name and the connection, or save it elsewhere with save_to_disk and give that folder"
    try:
        hub.HfApi().dataset_info(source, timeout=PATIENCE)
    except hub.errors.HFValidationError as error:
        raise BadData(f"{source} is neither a folder nor an id of the hub like uoft-cs/cifar10") from error
    except hub.errors.OfflineModeIsEnabled:
        pass  # HF_HUB_OFFLINE: a copy in the cache will do
    except Exception as error:  # of the hub or of the connection
        raise Unreachable(f"cannot get {source} from the hub ({first_line(error)}); {advice}") from error
    try:
        return datasets.load_dataset(source, split=split)
    except ValueError as error:  # how datasets says that it has no such split
        raise BadData(f"{source} cannot be loaded as {source}:{split}: {first_line(error)}") from error
    except Exception as error:
        raise Unreachable(f"cannot get {source} from the hub ({first_line(error)}); {advice}") from error


def _image_column(features: Any, name: str) -> str:
    columns = [column for column, kind in features.items() if type(kind).__name__ == "Image"]
    if len(columns) != 1:
        raise BadData(
            f"{name} has {len(columns)} columns of images among {', '.join(features)}; save a copy with save_to_disk "
            "that has exactly one"
        )
    return str(columns[0])


def _labels(table: Any, name: str) -> tuple[list[int] | None, list[str]]:
    """The column of classes; none where the hub keeps the labels back and writes -1 for each."""
    columns = {column: kind.names for column, kind in table.features.items() if type(kind).__name__ == "ClassLabel"}
    if not columns:
        return None, []
    if len(columns) > 1:
        raise BadData(
            f"{name} has several columns of classes ({', '.join(columns)}); save a copy with save_to_disk that has one"
        )
    [(column, classes)] = columns.items()
    labels = list(table[column])
    if all(label == -1 for label in labels):
        return None, []
    for row, label in enumerate(labels):
        if label is None or not 0 <= label < len(classes):
            raise BadData(f"{name}: row {row} has the label {label}, which is none of its {len(classes)} classes")
    return labels, list(classes)
