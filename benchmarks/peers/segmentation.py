"""Segmentation beside what a lab would use instead, in one run on the same pictures.

    python -m benchmarks peers segmentation [--data DIR] [--learn 1,5,20,200] [--test 64]
                                            [--method ours,trees,potts,forest] [--draws N]
                                            [--out DIR]

DIR holds ``train`` and ``test`` with pictures and masks (see `engine.datasets.image_folder`); by
default the horses. Contestants: ours (trees of two stages, learned edges); scikit-learn's trees on
the same filter bank alone, and with a Potts cut whose weight is tuned on the training pictures'
out-of-fold guesses; a random forest of the kind that ilastik has. All are compared at the size of
the files. Processor seconds are of learning, all cores together; seconds beside them are those of
the clock. Every row is kept as it comes in ``--out``: a run that was interrupted goes on, and one
row is a command of its own (``--learn 200 --method ours``). The table stands there as table.json.

``--draws 6`` draws so many times from ``train`` and judges on others of it, so that few pictures
show more than their draw, and ``test`` is left out of what is chosen by it.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from benchmarks.common.kept_results import KeptResults
from benchmarks.common.reporting import (
    REAL_DATA,
    RESULTS,
    machine_facts,
    print_machine,
    print_table,
)
from engine.crf.filter_bank import FilterBank
from engine.crf.image_grid import enlarge, model_shape, shrink_image, shrink_mask
from engine.datasets.image_folder import list_images
from engine.graphs.grid import Grid
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.prediction import predict_segmentation
from engine.metrics.segmentation import intersection_over_union, pixel_error
from engine.oracles.grid_roof_duality import GridRoofDuality, decode_vertex

MAX_SIDE = 200
SAMPLES = 300_000
POTTS = (0.0, 0.5, 1.0, 2.0, 4.0)
PUBLISHED = (
    "Published, horses, linear unaries, truncated fitting: error .0813 (Tang 2015, figures 6 and 7)"
)


Pair = tuple[np.ndarray, np.ndarray]
Guess = Callable[[np.ndarray], np.ndarray]
"""From a picture of its model's size to log-odds."""


def read_pairs(folder: Path, count: int, seed: int, after: int = 0) -> list[Pair]:
    """Pictures and masks, ``count`` of them drawn at random, behind the first ``after`` drawn."""
    files = [file for file in list_images(folder) if file.mask_paths]
    chosen = np.random.default_rng(seed).permutation(len(files))[after : after + count]
    pairs = []
    for index in sorted(chosen):
        image = files[index].read_image()
        pairs.append((image, files[index].read_mask((image.shape[0], image.shape[1]))))
    return pairs


def shrunk(image: np.ndarray) -> np.ndarray:
    return shrink_image(image, model_shape(image.shape[:2], MAX_SIDE))


def sample(pairs: Sequence[Pair], bank: FilterBank) -> tuple[np.ndarray, np.ndarray]:
    """Filters and labels of random pixels of all pictures."""
    rng = np.random.default_rng(0)
    rows, labels = [], []
    for image, mask in pairs:
        colours = shrunk(image)
        planes = bank.compute(colours).reshape(bank.n_features, -1)
        count = min(SAMPLES // len(pairs), planes.shape[1])
        pixels = rng.choice(planes.shape[1], count, replace=False)
        rows.append(planes[:, pixels].T)
        labels.append(shrink_mask(mask, colours.shape[:2]).ravel()[pixels])
    return np.concatenate(rows), np.concatenate(labels)


def trees_alone(pairs: Sequence[Pair], bank: FilterBank) -> Guess:
    trees = HistGradientBoostingClassifier(
        max_iter=250, max_leaf_nodes=63, min_samples_leaf=40, early_stopping=False, random_state=0
    )
    trees.fit(*sample(pairs, bank))

    def guess(colours: np.ndarray) -> np.ndarray:
        planes = bank.compute(colours)
        odds = trees.decision_function(planes.reshape(len(planes), -1).T)
        return np.asarray(odds.reshape(colours.shape[:2]))

    return guess


def random_forest(pairs: Sequence[Pair], bank: FilterBank) -> Guess:
    rows, labels = sample(pairs, bank)
    forest = RandomForestClassifier(100, min_samples_leaf=2, n_jobs=2, random_state=0)
    forest.fit(rows, labels)

    def guess(colours: np.ndarray) -> np.ndarray:
        planes = bank.compute(colours)
        odds = forest.predict_proba(planes.reshape(len(planes), -1).T)[:, 1]
        odds = np.clip(odds, 1e-3, 1 - 1e-3)
        return np.log(odds / (1 - odds)).reshape(colours.shape[:2])

    return guess


def potts_cut(log_odds: np.ndarray, colours: np.ndarray, weight: float) -> np.ndarray:
    """The best labelling under a contrast-sensitive Potts model, as 0 and 1."""
    values = colours.astype(float)
    along, down = values[:, 1:] - values[:, :-1], values[1:] - values[:-1]
    steps = [(along**2).sum(2), (down**2).sum(2)]
    scale = 2 * max(np.concatenate([step.ravel() for step in steps]).mean(), 1.0)
    grid = Grid(*log_odds.shape)
    tables = grid.zeros()
    tables.nodes[:, :, 1] = log_odds
    for edges, step in zip((tables.horizontal, tables.vertical), steps, strict=True):
        agreement = weight * np.exp(-step / scale)
        edges[..., 0, 0] = edges[..., 1, 1] = agreement
    point = GridRoofDuality(grid).compute_extreme_point(tables.flat)
    return decode_vertex(grid, point.vertex.values).astype(float)


def tuned_potts(pairs: Sequence[Pair], bank: FilterBank) -> float:
    """The weight of least error on a third of the pictures, guessed by trees of the others."""
    kept, others = pairs[::3], [pair for k, pair in enumerate(pairs) if k % 3]
    if not others:
        return 1.0
    guess = trees_alone(others, bank)
    errors = []
    for weight in POTTS:
        found = [
            (potts_cut(guess(shrunk(image)), shrunk(image), weight), mask) for image, mask in kept
        ]
        wrong = [pixel_error(enlarge(cut, m.shape) >= 0.5, m) for cut, m in found]
        errors.append(float(np.mean(wrong)))
    return POTTS[int(np.argmin(errors))]


def scores(pairs: Sequence[Pair], mask_of: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """Mean error and overlap at the size of the files."""
    found = [(mask_of(image), mask) for image, mask in pairs]
    errors = [pixel_error(ours, mask) for ours, mask in found]
    overlaps = [intersection_over_union(ours, mask) for ours, mask in found]
    return [float(np.mean(errors)), float(np.mean(overlaps))]


Row = dict[str, Any]
Pairs = Sequence[Pair]


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What work returns, its processor seconds, and its seconds."""
    processor, clock = process_time(), perf_counter()
    found = work()
    return found, process_time() - processor, perf_counter() - clock


def run_ours(train: Pairs, test: Pairs) -> Row:
    """Trees of two stages and learned edges."""
    ours, *seconds = timed(
        lambda: train_boosted_segmentation((i for i, _ in train), (m for _, m in train))
    )
    result = scores(test, lambda image: predict_segmentation(ours.model, image).labels)
    return row(f"ours, {ours.loss}", result, seconds, n_refits=ours.model.unaries.n_refits)


def run_trees(train: Pairs, test: Pairs) -> Row:
    """The same library's trees on the same filters."""
    bank = FilterBank()
    guess, *seconds = timed(lambda: trees_alone(train, bank))
    return row("trees alone", scores(test, by(guess)), seconds)


def run_potts(train: Pairs, test: Pairs) -> Row:
    """The trees, and a Potts cut whose weight is tuned on pictures kept from others."""
    bank = FilterBank()
    (guess, weight), *seconds = timed(lambda: (trees_alone(train, bank), tuned_potts(train, bank)))

    def cut(image: np.ndarray) -> np.ndarray:
        colours = shrunk(image)
        return enlarge(potts_cut(guess(colours), colours, weight), image.shape[:2]) >= 0.5

    return row(f"trees, Potts {weight:g}", scores(test, cut), seconds)


def run_forest(train: Pairs, test: Pairs) -> Row:
    """A random forest, as ilastik has."""
    bank = FilterBank()
    guess, *seconds = timed(lambda: random_forest(train, bank))
    return row("random forest", scores(test, by(guess)), seconds)


METHODS = {"ours": run_ours, "trees": run_trees, "potts": run_potts, "forest": run_forest}


def by(guess: Guess) -> Callable[[np.ndarray], np.ndarray]:
    """Masks of pictures from log-odds at the size of their models."""
    return lambda image: enlarge(guess(shrunk(image)), image.shape[:2]) > 0


def row(name: str, result: list[float], seconds: list[float], **more: Any) -> Row:
    """One row of the table."""
    processor, clock = seconds
    figures = {"error": result[0], "iou": result[1], "processor_s": processor, "seconds": clock}
    return {"method": name, **figures, **more}


def contest(kept: KeptResults, args: argparse.Namespace, count: int) -> list[Row]:
    """The rows of one number of pictures to learn from, each kept as it comes."""

    def make(method: str, draw: int | None) -> dict[str, Any]:
        train = read_pairs(args.data / "train", count, seed=5 if draw is None else draw)
        if draw is None:
            test = read_pairs(args.data / "test", args.test, seed=0)
        else:
            test = read_pairs(args.data / "train", args.test, seed=draw, after=count)
        made = METHODS[method](train, test)
        return {"row": np.array(json.dumps({"learned_from": len(train)} | made))}

    def found(method: str, draw: int | None = None) -> Row:
        name = f"{count}_{method}" + ("" if draw is None else f"_draw_{draw}")
        return dict(json.loads(str(kept.remember(name, partial(make, method, draw))["row"])))

    methods = args.method.split(",")
    if not args.draws:
        return [found(method) for method in methods]
    drawn = {method: [found(method, k) for k in range(args.draws)] for method in methods}
    for k in range(args.draws):
        rows = [drawn[method][k] for method in methods]
        print(
            f"draw {k}:", "; ".join(f"{r['method']} {r['error']:.4f} {r['iou']:.3f}" for r in rows)
        )
    return [mean_row(method, rows) for method, rows in drawn.items()]


def mean_row(method: str, rows: Sequence[Row]) -> Row:
    """The mean of the rows of several draws."""
    means = {k: float(np.mean([r[k] for r in rows])) for k in rows[0] if k != "method"}
    return {"learned_from": means.pop("learned_from"), "method": f"{method}, mean", **means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=REAL_DATA / "weizmann_horses")
    parser.add_argument("--learn", default="1,5,20,200", help="numbers of pictures to learn from")
    parser.add_argument("--test", type=int, default=64)
    parser.add_argument("--method", default=",".join(METHODS), help="which rows, by commas")
    parser.add_argument("--draws", type=int, default=0, help="of `train`, judged on others of it")
    parser.add_argument("--out", type=Path, default=RESULTS / "bench_segmentation")
    args = parser.parse_args()
    if strange := set(args.method.split(",")) - set(METHODS):
        parser.error(f"--method: expected some of {', '.join(METHODS)}, received {strange.pop()}")
    print_machine()
    print(PUBLISHED)
    folder = args.out / args.data.name
    kept = KeptResults(folder, {"data": args.data, "test": args.test})
    rows: list[Row] = []
    for count in (int(word) for word in args.learn.split(",")):
        rows += (found := contest(kept, args, count))
        shown = [list(one.values())[1:6] for one in found]
        header = ["method", "error", "IoU", "learning, processor s", "s"]
        print_table(f"{count} to learn from, {args.test} to test on", header, shown)
    table = {"machine": machine_facts(("scikit-learn", "numba")), "rows": rows}
    (folder / "table.json").write_text(json.dumps(table, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
