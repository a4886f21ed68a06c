"""Warm-up of the first computations' code: ``python -m webapp.supervisor.warm``.

Runs the verbs once on tiny input, so that the compile cache is filled before a user waits for it.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from engine import generate_leaf_images, predict_segmentation, train_class_segmentation
from engine.learning.segmentation.live_segmenter import LiveSegmenter
from webapp.instance import BASE_DIR
from webapp.supervisor.linux import die_with_parent


def warm(folder: Path) -> None:
    """Run users' first steps once on small input: roommates up to evaluation, then images."""
    out = str(folder)
    survey, pairs, model = f"{out}/survey_3.csv", f"{out}/pairs_3.csv", f"{out}/model.npz"
    cohorts = [f"{out}/survey_{k}.csv:{out}/pairs_{k}.csv" for k in (1, 2)]
    images, segmenter = f"{out}/images", f"{out}/segmenter.npz"
    _draw_images(Path(images))
    for arguments in (
        ["roommates", "simulate", "--students", "40", "--cohorts", "3", "--out", out],
        ["roommates", "train", "--cohort", cohorts[0], "--cohort", cohorts[1], "--out", model],
        ["roommates", "assign", "--survey", survey, "--model", model, "--out", f"{out}/new.csv"],
        ["roommates", "evaluate", "--survey", survey, "--pairs", pairs, "--model", model,
         "--out", f"{out}/evaluation"],
        ["segment", "train", "--images", images, "--out", segmenter],
        ["segment", "predict", "--images", images, "--model", segmenter, "--out", f"{out}/masks"],
    ):  # fmt: skip
        command = [sys.executable, "-m", "engine", *arguments]
        subprocess.run(  # noqa: S603
            command,
            cwd=BASE_DIR,
            check=True,
            timeout=600,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    _paint()


def _paint() -> None:
    """Compile the code that answers painted strokes and learns from them."""
    (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=(48, 64))
    labels = np.full(leaf.mask.shape, 255, dtype=np.uint8)
    labels[::3, ::3] = leaf.mask[::3, ::3]
    live = LiveSegmenter(["rest", "leaf"])
    live.add_image("leaf", leaf.image)
    live.learn({"leaf": labels})
    live.predict("leaf")
    trained = train_class_segmentation([leaf.image], [labels], ["rest", "leaf"])
    predict_segmentation(trained.model, leaf.image)


def _draw_images(folder: Path) -> None:
    """Write two small labelled images in the format of the command line."""
    folder.mkdir()
    drawn = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    for number, leaf in enumerate(drawn):
        Image.fromarray(leaf.image).save(folder / f"{number}.png")
        Image.fromarray(leaf.mask).save(folder / f"{number}.mask.png")


if __name__ == "__main__":
    os.nice(10)  # pages come first
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        warm(Path(name))
    print(f"compiled in {time.monotonic() - started:.1f} s", file=sys.stderr)  # noqa: T201
