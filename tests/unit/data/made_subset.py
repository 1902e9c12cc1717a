"""How the subset of CIFAR-10 that comes with dualrs was made."""

import json

import numpy as np
from PIL import Image

from dualrs.data import cifar10

STEP, ROWS, COLUMNS = cifar10._STEP, cifar10._ROWS, cifar10._COLUMNS


def make_subset(test, folder):
    """Write the picture of the subset, and the card with its labels, from the full test split."""
    chosen = range(0, len(test.ids), STEP)
    images = np.stack([test.image(i) for i in chosen])
    assert test.labels is not None, "CIFAR-10 has labels"
    labels = np.array([test.labels[i] for i in chosen], dtype=np.uint8)
    digits = "".join(map(str, labels.tolist()))
    card = {
        "title": f"CIFAR-10, every {STEP}th image of the test split",
        "source": cifar10.HOME,
        "citation": "Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        "licence": "Its authors state none and ask for the citation above. The licence of dualrs does not cover it.",
        "layout": f"{ROWS} rows of {COLUMNS} tiles of 32 x 32 pixels, RGB, row by row in the order of the test split",
        "ids": f"test/00000, test/{STEP:05}, ... test/{chosen[-1]:05}",
        "classes": cifar10.CLASSES,
        "labels": [digits[start : start + COLUMNS] for start in range(0, len(digits), COLUMNS)],
        "sha256": cifar10._subset_sha256(images, labels),
    }
    grid = images.reshape(ROWS, COLUMNS, *cifar10.SHAPE).transpose(0, 3, 1, 4, 2).reshape(ROWS * 32, COLUMNS * 32, 3)
    Image.fromarray(grid).save(folder / "cifar10-subset.png", optimize=True)
    (folder / "cifar10-subset.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
