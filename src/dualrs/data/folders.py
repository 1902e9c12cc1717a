"""Folders of images: one folder per class, as ImageNet's validation set is kept, or a flat folder without labels."""

from collections.abc import Iterable
from pathlib import Path

from dualrs.data.encoded import EncodedImages, Preprocessing
from dualrs.errors import BadData, BadImage

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
PARTS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"}


class ImageFolder(EncodedImages):
    """The images of a folder. Class folders, sorted by name, get the class numbers 0, 1, ...; ids are relative paths.

    For ImageNet these are the usual numbers if all 1,000 synset folders are there; a folder without images counts.
    What is hidden (its name begins with a dot) and what does not end like an image is passed over.
    """

    def __init__(self, path: str | Path, resize: int | None = None, crop: int | None = None) -> None:
        preprocessing = Preprocessing(resize, crop)
        self._folder = Path(path).expanduser()
        try:
            inside = sorted(self._folder.iterdir(), key=Path.as_posix)  # the same order on every system
            flat = _images(inside)
            folders = [p for p in inside if p.is_dir() and not p.name.startswith(".")]
            by_class = [_images(sorted(folder.rglob("*"), key=Path.as_posix)) for folder in folders]
        except OSError as error:
            raise BadData(f"cannot read the folder {self._folder}: {error.strerror}") from error
        if flat and folders:
            raise BadData(
                f"{self._folder} holds images ({flat[0].name}) beside folders ({folders[0].name}), so it is neither "
                "class folders nor a flat folder; move one kind away"
            )
        parts = [folder for folder, files in zip(folders, by_class, strict=True) if files]
        if parts and all(p.name.lower() in PARTS for p in parts) and not any(_images(p.iterdir()) for p in parts):
            raise BadData(
                f"the folders of {self._folder} are parts of a dataset ({', '.join(p.name for p in parts)}), each with "
                f"class folders of its own; give one of them: folder:{parts[-1]}"
            )
        if not flat and not any(by_class):
            raise BadData(f"there are no images in {self._folder}, nor in folders of classes inside it")
        files = flat or [file for files in by_class for file in files]
        super().__init__(
            name=self._folder.resolve().name,
            ids=[file.relative_to(self._folder).as_posix() for file in files],
            labels=None if flat else [number for number, files in enumerate(by_class) for _ in files],
            classes=[folder.name for folder in folders],
            preprocessing=preprocessing,
        )

    def content(self, index: int) -> bytes:
        """The bytes of one file."""
        file = self._folder / self.ids[index]
        try:
            return file.read_bytes()
        except OSError as error:
            raise BadImage(f"cannot read the image {file}: {error.strerror}") from error


def _images(paths: Iterable[Path]) -> list[Path]:
    return [p for p in paths if p.suffix.lower() in SUFFIXES and not p.name.startswith(".") and p.is_file()]
