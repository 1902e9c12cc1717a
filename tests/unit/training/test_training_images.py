"""Batches for training: shifted and mirrored copies of the right images."""

import numpy as np
import pytest
import torch

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadData
from dualrs.training import images as module
from dualrs.training.images import TrainingImages, plain_batches

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)
DATASET = ArrayDataset(PIXELS, [0, 1, 2, 0, 1, 2], name="random")


def windows(image):
    """Every view that shifting by up to 4 pixels and mirroring can give."""
    padded = np.pad(image, [(0, 0), (4, 4), (4, 4)], mode="reflect")
    views = [padded[:, r : r + 32, c : c + 32] for r in range(9) for c in range(9)]
    return {v.tobytes() for v in views} | {v[:, :, ::-1].tobytes() for v in views}


def test_batch_holds_shifted_and_mirrored_copies_of_the_images_asked_for():
    images = TrainingImages(DATASET)
    allowed = [windows(p) for p in PIXELS]
    indices = torch.tensor([4, 1, 1, 0] * 50)
    batch = images.batch(indices, torch.Generator().manual_seed(0))
    views = (batch * 255).round().to(torch.uint8).numpy()
    for index, view in zip(indices.tolist(), views, strict=True):
        assert view.tobytes() in allowed[index]
    assert len({v.tobytes() for v in views}) > 140  # of 3 x 162 views, drawn 200 times
    assert float(batch.min()) >= 0
    assert float(batch.max()) <= 1


def test_same_source_gives_the_same_batch():
    images = TrainingImages(DATASET)
    one, other = (images.batch(torch.arange(6), torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one, other)


@pytest.mark.parametrize("places", [None, [5, 0, 3]], ids=["all", "some"])
def test_images_that_are_read_give_the_batches_of_images_that_are_held(monkeypatch, places):
    held = TrainingImages(DATASET, places)
    monkeypatch.setattr(module, "_HELD_AT_MOST", PIXELS[0].nbytes)
    asked = []
    monkeypatch.setattr(DATASET, "image", lambda i: asked.append(i) or PIXELS[i])
    read = TrainingImages(DATASET, places)
    assert len(asked) == 1, "only the first was looked at, for its shape"
    indices = torch.tensor([2, 0, 2, 1])
    one, other = (images.batch(indices, torch.Generator().manual_seed(7)) for images in (held, read))
    assert torch.equal(one, other)
    assert len(asked) == 5


def test_subsets_are_told_apart_and_keep_their_ids():
    everything, subset, other = (
        TrainingImages(DATASET),
        TrainingImages(DATASET, [4, 1]),
        TrainingImages(DATASET, [1, 4]),
    )
    assert subset.ids == ("4", "1")
    assert subset.labels.tolist() == [1, 1]
    assert len({everything.fingerprint, subset.fingerprint, other.fingerprint}) == 3
    assert everything.fingerprint == TrainingImages(DATASET, range(6)).fingerprint
    brighter = ArrayDataset(PIXELS | 1, DATASET.labels, name="random")
    assert TrainingImages(brighter).fingerprint != everything.fingerprint


def test_images_without_labels_are_refused():
    with pytest.raises(BadData, match="no labels"):
        TrainingImages(ArrayDataset(PIXELS, name="bare"))


def test_plain_batches_are_the_images_in_order():
    batches = list(plain_batches(DATASET, 4))
    assert [len(x) for x, _ in batches] == [4, 2]
    assert np.array_equal((torch.cat([x for x, _ in batches]) * 255).round().numpy(), PIXELS)
    assert torch.cat([y for _, y in batches]).tolist() == list(DATASET.labels)
