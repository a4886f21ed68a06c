"""Classes of pixels: learning curves from whole label maps and from scribbles, beside peers.

    python -m benchmarks peers classes [--data DIR] [--learn 1,5,20] [--shares 0.001,0.01,0.1,1]
                                       [--method 'ours;...'] [--side 200] [--test 20]
                                       [--out DIR] [--quick]

DIR holds ``train``, ``test`` and ``classes.csv`` (by default the scenes of the real data). Of every
picture a share of the pixels is painted, in short strokes at random; 1 is the whole map.
Contestants: ours (trees of two stages, edges where they help); the trees alone; these trees and a
Potts cut by expansions, whose weight is tuned on a third of the pictures by trees of the others; a
random forest on the same filter bank, as ilastik has. Error and mean overlap of classes over all
pixels of the test pictures; processor seconds of learning. Rows are kept as they come in ``--out``:
a run that was interrupted goes on.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.common.kept_results import KeptResults
from benchmarks.common.reporting import REAL_DATA, print_machine, print_table
from engine.crf.class_features import UNKNOWN, ClassLayout
from engine.crf.filter_bank import FilterBank
from engine.crf.image_grid import model_shape, shrink_image, shrink_labels
from engine.datasets.image_folder import list_images
from engine.datasets.label_maps import LabelCode, match_values, read_label_code, read_values
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.class_weights import trees_alone
from engine.learning.segmentation.model import Detail, SegmentationModel
from engine.learning.segmentation.prediction import predict_segmentation
from engine.metrics.classes import Confusion, confusion

STROKE = 12  # pixels of a stroke
SAMPLES = 100_000
POTTS = (0.0, 0.3, 1.0, 3.0)
PUBLISHED = (
    "Published, CamVid's 11 classes, all 367 pictures to learn from and 233 to test on (here fewer,"
    " of other parts of the films), error: structure from motion and appearance .309, boosting .236"
    ", with a pairwise CRF .202, with one of higher order .162; SegNet from 3,500 pictures .096,"
    " IoU .601 (Badrinarayanan, Kendall and Cipolla 2017, table 2)"
)

Pair = tuple[np.ndarray, np.ndarray]


def read_pairs(folder: Path, code: LabelCode, count: int, seed: int) -> list[Pair]:
    """Pictures and label maps, ``count`` of them drawn at random."""
    files = [file for file in list_images(folder) if file.mask_paths]
    pairs = []
    for index in sorted(np.random.default_rng(seed).permutation(len(files))[:count]):
        image, path = files[index].read_image(), files[index].mask_path
        values = match_values(read_values(path), image.shape[:2], name=path.name)
        pairs.append((image, code.labels(values, path.name)))
    return pairs


def scribbled(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The labels under straight strokes that cover about a share of the pixels; else unknown."""
    if share >= 1:
        return labels
    painted = np.full_like(labels, UNKNOWN)
    for _ in range(max(1, round(share * labels.size / STROKE))):
        row, column = rng.integers(labels.shape[0]), rng.integers(labels.shape[1])
        down, across = (np.cos(angle := rng.uniform(0, np.pi)), np.sin(angle))
        steps = np.arange(STROKE)
        y = np.clip((row + down * steps).astype(int), 0, labels.shape[0] - 1)
        x = np.clip((column + across * steps).astype(int), 0, labels.shape[1] - 1)
        painted[y, x] = labels[y, x]
    return painted


def judge(test: Sequence[Pair], label: Callable[[np.ndarray], np.ndarray], n: int) -> list[float]:
    """Error and mean overlap over all pixels of the pictures."""
    total = Confusion(np.zeros((n, n), dtype=np.int64))
    for image, truth in test:
        total = total + confusion(label(image), truth, n)
    return [total.error, total.mean_overlap]


def ours(
    train: Sequence[Pair], test: Sequence[Pair], code: LabelCode, side: int, loss: str | None = None
) -> list:
    """Error, overlap and seconds of trees with or without edges."""
    started = process_time()
    images, labels = (image for image, _ in train), (label for _, label in train)
    found = train_class_segmentation(
        images, labels, code.names, loss=loss, detail=Detail(max_side=side)
    )
    seconds = process_time() - started
    label = lambda image: predict_segmentation(found.model, image).labels  # noqa: E731
    return [*judge(test, label, len(code.names)), seconds]


def potts(train: Sequence[Pair], test: Sequence[Pair], code: LabelCode, side: int) -> list:
    """Error, overlap and seconds of the trees and a Potts cut of tuned weight."""
    started, n = process_time(), len(code.names)

    def trees_of(pairs: Sequence[Pair]) -> SegmentationModel:
        images, labels = (image for image, _ in pairs), (label for _, label in pairs)
        detail = Detail(max_side=side)
        found = train_class_segmentation(images, labels, code.names, loss="trees", detail=detail)
        return found.model

    def cut(model: SegmentationModel, weight: float) -> Callable[[np.ndarray], np.ndarray]:
        layout = ClassLayout(n)
        theta = trees_alone(layout)
        layout.split(theta)[1][:] = weight * layout.split(layout.smooth())[1]
        smoothed = replace(model, theta=theta)

        def label(image: np.ndarray) -> np.ndarray:
            best = predict_segmentation(smoothed, image, with_best=True).best
            return np.asarray(best.labels)

        return label

    kept, others = train[::3], [pair for k, pair in enumerate(train) if k % 3]
    weight = 1.0
    if others:
        model = trees_of(others)
        errors = [judge(kept, cut(model, one), n)[0] for one in POTTS]
        weight = POTTS[int(np.argmin(errors))]
    label = cut(trees_of(train), weight)
    seconds = process_time() - started
    return [*judge(test, label, n), seconds]


def random_forest(train: Sequence[Pair], test: Sequence[Pair], code: LabelCode, side: int) -> list:
    """Error, overlap and seconds of a random forest on the filter bank."""
    started, bank, n = process_time(), FilterBank(), len(code.names)
    rng = np.random.default_rng(0)
    rows, given = [], []
    for image, labels in train:
        colours = shrink_image(image, model_shape(image.shape[:2], side))
        small = shrink_labels(labels, colours.shape[:2], n).ravel()
        known = np.flatnonzero(small < n)
        known = rng.choice(known, min(len(known), SAMPLES // len(train)), replace=False)
        rows.append(bank.compute(colours).reshape(bank.n_features, -1)[:, known].T)
        given.append(small[known])
    forest = RandomForestClassifier(100, min_samples_leaf=2, n_jobs=2, random_state=0)
    forest.fit(np.concatenate(rows), np.concatenate(given))
    seconds = process_time() - started

    def label(image: np.ndarray) -> np.ndarray:
        colours = shrink_image(image, model_shape(image.shape[:2], side))
        guess = forest.predict(bank.compute(colours).reshape(bank.n_features, -1).T)
        small = guess.reshape(colours.shape[:2]).astype(np.uint8)
        y = (np.arange(image.shape[0]) + 0.5) * small.shape[0] / image.shape[0]
        x = (np.arange(image.shape[1]) + 0.5) * small.shape[1] / image.shape[1]
        return small[np.ix_(y.astype(int), x.astype(int))]

    return [*judge(test, label, n), seconds]


CONTESTANTS: dict[str, Callable[[Sequence[Pair], Sequence[Pair], LabelCode, int], list]] = {
    "ours": ours,
    "trees alone": partial(ours, loss="trees"),
    "trees, Potts": potts,
    "random forest": random_forest,
}


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=REAL_DATA / "scenes")
    parser.add_argument("--learn", default="1,5,20", help="numbers of pictures to learn from")
    parser.add_argument("--shares", default="0.001,0.01,0.1,1", help="shares that are painted")
    parser.add_argument("--method", default=";".join(CONTESTANTS), help="which rows, by semicolons")
    parser.add_argument("--side", type=int, default=200, help="longest side of a model, pixels")
    parser.add_argument("--test", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/classes"))
    parser.add_argument("--quick", action="store_true", help="2 pictures, 1 %% and all, 2 to test")
    args = parser.parse_args(words)
    if strange := set(args.method.split(";")) - set(CONTESTANTS):
        parser.error(f"--method: expected some of {', '.join(CONTESTANTS)}, not {strange.pop()}")
    if args.quick:
        args.learn, args.shares, args.test = "2", "0.01,1", 2
    return args


def run(args: argparse.Namespace) -> list[list]:
    """Return a row for every number, share and contestant."""
    code = read_label_code(args.data / "classes.csv", ())
    settings = {"data": args.data.name, "test": args.test, "side": args.side}
    kept = KeptResults(args.out, settings)
    test = read_pairs(args.data / "test", code, args.test, seed=0)
    rows = []
    for count in map(int, args.learn.split(",")):
        whole = read_pairs(args.data / "train", code, count, seed=5)
        for share in map(float, args.shares.split(",")):
            rng = np.random.default_rng(7)
            train = [(image, scribbled(labels, share, rng)) for image, labels in whole]
            for name in args.method.split(";"):
                key = f"{name.replace(', ', '-').replace(' ', '-')}-{count}-{share:g}"
                found = kept.remember(
                    key,
                    lambda compete=CONTESTANTS[name], seen=train: {
                        "row": np.array(compete(seen, test, code, args.side))
                    },
                )
                rows.append([count, f"{share:.1%}", name, *map(float, found["row"])])
    return rows


def main() -> None:
    print_machine()
    print(PUBLISHED)
    header = ["pictures", "painted", "method", "error", "IoU", "learning, processor s"]
    print_table("Classes, all pixels of the test pictures", header, run(parse()))


if __name__ == "__main__":
    main()
