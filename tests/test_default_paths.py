"""Number of engine files through which a default run passes: what a newcomer must read."""

import sys
import threading
from pathlib import Path

import numpy as np

import engine
from engine import (
    generate_leaf_images,
    simulate_university,
    train_boosted_segmentation,
    train_roommates,
)

ROOT = Path(engine.__file__).parent
MOST_OF_TRAINING = 32
MOST_OF_MASKS = 54  # the aim is 30


def traced_files(work):
    """Return the engine's files whose functions run in ``work``, module bodies excluded."""
    files = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(str(Path(f).relative_to(ROOT)) for f in files if Path(f).is_relative_to(ROOT))


def test_warm_training_of_roommates_passes_through_few_files():
    year = simulate_university(60, 1, rng=np.random.default_rng(0)).cohorts[0]
    train_roommates([(year.survey, year.pairs)])
    files = traced_files(lambda: train_roommates([(year.survey, year.pairs)]))
    assert "solvers/theta_ascent.py" in files
    assert len(files) <= MOST_OF_TRAINING, files


def test_warm_training_on_masks_passes_through_few_files():
    leaves = generate_leaf_images(4, rng=np.random.default_rng(0), shape=(48, 64))
    images, masks = [leaf.image for leaf in leaves], [leaf.mask for leaf in leaves]
    train_boosted_segmentation(images, masks, max_side=40)
    files = traced_files(lambda: train_boosted_segmentation(images, masks, max_side=40))
    assert "learning/segmentation/tree_learning.py" in files
    assert len(files) <= MOST_OF_MASKS, files
