"""Training and prediction of several classes, scribbles and maps for the verb ``segment``."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cli.failures import Failures, name_skipped
from engine.cli.label_codes import class_weights
from engine.cli.label_sources import LabelSource, known_labels, training_labels
from engine.cli.option_types import number
from engine.cli.output_paths import check_writable, make_folder, open_checkpoint
from engine.cli.picture_files import (
    choose_side,
    read_each,
    read_maps,
    some_of,
    spare_drawn,
    training_figures,
    viewed,
)
from engine.cli.segment_tiles import predict_in_tiles, wants_tiles
from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.datasets.image_folder import ImageFile, list_images
from engine.datasets.label_maps import LabelCode, write_label_map
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.class_model import (
    ClassSegmentationModel,
    Detail,
    load_class_model,
)
from engine.learning.segmentation.class_prediction import ClassPrediction, predict_classes
from engine.learning.segmentation.detail_choice import MOST_SIDE
from engine.learning.segmentation.given_maps import Planes
from engine.metrics.classes import Confusion, class_figures, confusion

DIGITS = 10  # bound of a value in a label map: 32 bits, or a packed colour

Labelled = tuple[ByteImage, ClassLabels, Planes | None, str]


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Declare the training options for several classes."""
    parser.add_argument(
        "--classes",
        help="masks are label maps: a table of classes (CSV with columns value and class), names "
        "of the values 0, 1, ... with commas between them, or auto for all values there are",
    )
    parser.add_argument(
        "--unknown",
        type=_whole_numbers,
        default=(),
        help="values of pixels without a known class, separated by commas: pixels that "
        "scribbles leave unpainted, or pixels to ignore (default 255, unless it is a class)",
    )
    parser.add_argument(
        "--class-weights",
        help="how much a pixel of each class counts: numbers with commas between them, or "
        "balanced, by which all classes count alike",
    )
    parser.add_argument(
        "--scale",
        type=number(above=0.0, at_most=1.0),
        help="classes: size of the model's image relative to the image, instead of --max-side: "
        "1 for full resolution, where things have the same size in all images",
    )


def wants_classes(args: argparse.Namespace) -> bool:
    """Return True if a training option needs a model of several classes."""
    asked = (args.classes, args.class_weights, args.scale)
    return any(option is not None for option in asked) or bool(args.unknown)


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Train a model of several classes and write it.

    Raises
    ------
    InvalidProblemError
        If no file can be used or an option is bad.
    """
    check_writable(args.out)
    for option in ("solver", "cache", "gap", "rho"):
        if getattr(args, option) is not None:
            raise InvalidProblemError(f"--{option} does not go with label maps; leave it out.")
    if args.unaries == "linear":
        raise InvalidProblemError(
            "Classes are learned by boosted trees: --unaries linear does not go with label maps; "
            "leave it out."
        )
    listed, view = viewed(list_images(args.images, args.masks))
    source = training_labels(args, listed)
    files, code = source.files, source.code
    tried = {}
    if args.max_side == 0:
        some = some_of(files)

        def read_some() -> Iterator[tuple[ByteImage, ClassLabels, Planes | None]]:
            return (row[:3] for row in _labelled(some, source, args, []))

        tried = choose_side(read_some, len(code.names), MOST_SIDE, args)
    skipped: Failures = []
    read = _labelled(files, source, args, skipped)
    for_images, for_labels, for_maps = tee(read, 3)  # read on demand: holds one picture
    trained = train_class_segmentation(
        (row[0] for row in for_images),
        (row[1] for row in for_labels),
        code.names,
        maps=None if args.maps is None else (row[2] for row in for_maps),
        class_weights=class_weights(args.class_weights, _readable(source), len(code.names)),
        loss=args.loss,
        position=args.position,
        ridge=args.ridge,
        detail=Detail(args.max_side, args.scale or 0.0),
        values=code.values,
        unknown=code.unknown,
        max_seconds=args.max_seconds,
        on_progress=args.on_progress,
        checkpoint=open_checkpoint(args.checkpoint),
        rng=np.random.default_rng(args.seed or 0),
    )
    trained.model.save(args.out, view)
    return {
        "unaries": "boosted",
        **training_figures(trained, tried, len(files) - len(skipped)),
        "known_pixels": dict(zip(code.names, trained.n_known, strict=True)),
        "kept": _kept(trained.kept, code.names),
        "skipped": name_skipped([*source.left_out, *skipped]),
    }


def _kept(counts: Sequence[Confusion], names: Sequence[str]) -> dict[str, Any]:
    """Return the figures of held-out pictures; none if there were too few."""
    figures = class_figures(counts)
    if figures is None:
        return {}
    overlaps = [row["iou"] for row in figures.classes]
    by_class = {n: None if v != v else v for n, v in zip(names, overlaps, strict=True)}
    kept = {"n_images": figures.n_pictures, "error": figures.error, "iou": figures.overlap}
    return kept | {"iou_by_class": by_class}


def predict(args: argparse.Namespace) -> dict[str, Any]:
    """Write the label map and the probabilities of each image.

    Raises
    ------
    InvalidProblemError
        If no file can be used, or a label map drawn by hand would be overwritten.
    """
    model = load_class_model(args.model)
    files, _ = viewed(list_images(args.images), args.model)
    results = [_result_paths(args.out, file) for file in files]
    spare_drawn("label map", args.images, args.out, results)
    make_folder(args.out)
    skipped: Failures = []
    found = read_each(
        files, "Segmenting", args, skipped, lambda file: _predict_one(model, file, args)
    )
    done = [row for _, row in found]
    return {
        "classes": list(model.classes),
        "n_images": len(done),
        "images": done,
        "skipped": name_skipped(skipped),
    }


def _predict_one(
    model: ClassSegmentationModel, file: ImageFile, args: argparse.Namespace
) -> dict[str, Any]:
    """Write the label map and probabilities of a picture; return its row."""
    path, probabilities = _result_paths(args.out, file)
    outcome: dict[str, Any] = {"labels": str(path), "probabilities": str(probabilities)}
    if wants_tiles(file, args):
        found = predict_in_tiles(model, file, args, labels=path, probabilities=probabilities)
        counts = found["counts"]
        outcome["tiles"] = found["tiles"]
    else:
        maps = read_maps(args.maps, file)
        prediction = predict_classes(
            model, file.read_image(), maps, with_best=args.readout == "map"
        )
        labels = _read_out(prediction, args.readout, args.threshold)
        np.save(probabilities, prediction.probabilities, allow_pickle=False)
        write_label_map(path, labels, model.values)  # last, after the file that marks it as ours
        counts = np.bincount(labels.ravel(), minlength=256)
        if prediction.best is not None:
            outcome["score"] = prediction.best.score
            outcome["upper_bound"] = prediction.best.upper_bound
    shares = (counts[: model.n_classes] / counts.sum()).tolist()
    by_class = dict(zip(model.classes, shares, strict=True))
    return {"name": file.name, "shares": by_class} | outcome


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Compare predictions with known label maps, on known pixels only, class by class.

    Raises
    ------
    InvalidProblemError
        If no file can be used.
    """
    model = load_class_model(args.model)
    listed, _ = viewed(list_images(args.images, args.masks), args.model)
    source = known_labels(args, listed, LabelCode(model.classes, model.values, model.unknown))
    skipped: Failures = []
    rows: list[dict[str, Any]] = []
    n = len(model.classes)
    total = Confusion(np.zeros((n, n), dtype=np.int64))
    for image, truth, maps, name in _labelled(source.files, source, args, skipped):
        prediction = predict_classes(model, image, maps, with_best=args.readout == "map")
        labels = _read_out(prediction, args.readout, None)
        counts = confusion(labels, truth, n)
        rows.append({"name": name, "error": counts.error, "iou": counts.mean_overlap})
        total = total + counts
    by_class = {
        name: {"error": float(total.errors[k]), "iou": float(total.overlaps[k])}
        for k, name in enumerate(model.classes)
    }
    return {
        "images": rows,
        "error": total.error,
        "iou": total.mean_overlap,
        "classes": by_class,
        "confusion": total.counts.tolist(),
        "skipped": name_skipped([*source.left_out, *skipped]),
    }


def _labelled(
    files: Sequence[ImageFile], source: LabelSource, args: argparse.Namespace, skipped: Failures
) -> Iterator[Labelled]:
    """Yield pictures with labels, maps and names, one at a time; list the unusable files."""

    def read(file: ImageFile) -> Labelled:
        image = file.read_image()
        labels = source.labels(file, (image.shape[0], image.shape[1]))
        return image, labels, read_maps(args.maps, file), file.name

    return (row for _, row in read_each(files, "Reading", args, skipped, read))


def _readable(source: LabelSource) -> Iterator[ClassLabels]:
    """Yield the labels of every picture that has readable ones."""
    for file in source.files:
        with suppress(InvalidProblemError):  # the error names it when it is read for training
            yield source.labels(file)


def _read_out(
    prediction: ClassPrediction, readout: str, threshold: float | None
) -> NDArray[np.uint8]:
    """Return the labels of a readout; with a threshold, less probable ones become unknown.

    With two classes, the second is given where it reaches the threshold, and the first elsewhere.
    """
    if threshold is None:
        return prediction.read_out(readout)
    if len(prediction.classes) == 2:
        return prediction.above(1, threshold).astype(np.uint8)
    is_sure = prediction.probabilities.max(axis=2) >= threshold
    return np.where(is_sure, prediction.labels, UNKNOWN).astype(np.uint8)


def _result_paths(folder: Path, file: ImageFile) -> tuple[Path, Path]:
    """Return the paths of a picture's label map and probabilities."""
    return folder / f"{file.name}.labels.png", folder / f"{file.name}.probabilities.npy"


def _whole_numbers(text: str) -> tuple[int, ...]:
    """Return whole numbers from 0, parsed from a comma-separated list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= DIGITS for part in parts):
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 0,255, received {text!r}")
    return tuple(int(part) for part in parts)
