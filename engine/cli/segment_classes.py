"""Several classes, scribbles and maps on the command line: what `segment` does with label maps."""

import argparse
from collections.abc import Iterator, Sequence
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cli.failures import Failures, name_skipped
from engine.cli.label_codes import class_weights, label_code
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
from engine.datasets.label_maps import (
    LabelCode,
    match_values,
    read_values,
    write_label_map,
)
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

Labelled = tuple[ByteImage, ClassLabels, Planes | None, str]


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Declare what `train` takes for several classes."""
    parser.add_argument(
        "--classes",
        help="masks are label maps: a table of classes (CSV with columns value and class), names "
        "of the values 0, 1, ... with commas between them, or auto for all values there are",
    )
    parser.add_argument(
        "--unknown",
        type=_whole_numbers,
        default=(),
        help="values of pixels of which nothing is known, with commas between them: what "
        "scribbles leave unpainted, or what is to be ignored (default 255, unless it is a class)",
    )
    parser.add_argument(
        "--class-weights",
        help="how much a pixel of each class counts: numbers with commas between them, or "
        "balanced, by which all classes count alike",
    )
    parser.add_argument(
        "--scale",
        type=float,
        help="classes: models are so many times as large as their images, instead of --max-side: "
        "1 for full resolution, where things have the same size in all images",
    )


def wants_classes(args: argparse.Namespace) -> bool:
    """Whether an option of training asks for what only models of classes have."""
    asked = (args.classes, args.class_weights, args.scale)
    return any(option is not None for option in asked) or bool(args.unknown)


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Learn a model of several classes and write it.

    Raises
    ------
    InvalidProblemError
        If no file can be used or an option is bad.
    """
    check_writable(args.out)
    for option in ("solver", "cache", "gap"):
        if getattr(args, option):
            raise InvalidProblemError(f"--{option} does not go with label maps; leave it out.")
    files, view = viewed(list_images(args.images, args.masks))
    code = label_code(args, files)
    tried = {}
    if args.max_side == 0:
        some = some_of(files)

        def read_some() -> Iterator[tuple[ByteImage, ClassLabels, Planes | None]]:
            return (row[:3] for row in _labelled(some, code, args.maps, args, []))

        tried = choose_side(read_some, len(code.names), MOST_SIDE, args)
    skipped: Failures = []
    read = _labelled(files, code, args.maps, args, skipped)
    for_images, for_labels, for_maps = tee(read, 3)  # read in step: holds one picture
    trained = train_class_segmentation(
        (row[0] for row in for_images),
        (row[1] for row in for_labels),
        code.names,
        maps=None if args.maps is None else (row[2] for row in for_maps),
        class_weights=class_weights(args.class_weights, files, code),
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
        "skipped": name_skipped(skipped),
    }


def _kept(counts: Sequence[Confusion], names: Sequence[str]) -> dict[str, Any]:
    """Figures of the pictures that were judged by what never saw them; none of too few."""
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
    """Write label map and probabilities of a picture; return its row."""
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
        write_label_map(path, labels, model.values)  # after what marks it as ours
        counts = np.bincount(labels.ravel(), minlength=256)
        if prediction.best is not None:
            outcome["score"] = prediction.best.score
            outcome["upper_bound"] = prediction.best.upper_bound
    shares = (counts[: model.n_classes] / counts.sum()).tolist()
    by_class = dict(zip(model.classes, shares, strict=True))
    return {"name": file.name, "shares": by_class} | outcome


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Compare predictions with known label maps: known pixels only, class by class.

    Raises
    ------
    InvalidProblemError
        If no file can be used.
    """
    model = load_class_model(args.model)
    files, _ = viewed(list_images(args.images, args.masks), args.model)
    code = LabelCode(model.classes, model.values, model.unknown)
    skipped: Failures = []
    rows: list[dict[str, Any]] = []
    n = len(model.classes)
    total = Confusion(np.zeros((n, n), dtype=np.int64))
    for image, truth, maps, name in _labelled(files, code, args.maps, args, skipped):
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
        "skipped": name_skipped(skipped),
    }


def _labelled(
    files: Sequence[ImageFile],
    code: LabelCode,
    maps: Path | None,
    args: argparse.Namespace,
    skipped: Failures,
) -> Iterator[Labelled]:
    """Pictures with labels, maps and names, one at a time; what cannot be used is listed."""

    def read(file: ImageFile) -> Labelled:
        image = file.read_image()
        path = file.mask_path
        values = match_values(read_values(path), (image.shape[0], image.shape[1]), name=path.name)
        return image, code.labels(values, path.name), read_maps(maps, file), file.name

    return (row for _, row in read_each(files, "Reading", args, skipped, read))


def _read_out(
    prediction: ClassPrediction, readout: str, threshold: float | None
) -> NDArray[np.uint8]:
    """Labels as asked for; with a threshold, less probable ones become unknown.

    Of two classes the second is given wherever it is so probable, and the first elsewhere.
    """
    if threshold is None:
        return prediction.read_out(readout)
    if len(prediction.classes) == 2:
        return prediction.above(1, threshold).astype(np.uint8)
    is_sure = prediction.probabilities.max(axis=2) >= threshold
    return np.where(is_sure, prediction.labels, UNKNOWN).astype(np.uint8)


def _result_paths(folder: Path, file: ImageFile) -> tuple[Path, Path]:
    """Where label map and probabilities of a picture go."""
    return folder / f"{file.name}.labels.png", folder / f"{file.name}.probabilities.npy"


def _whole_numbers(text: str) -> tuple[int, ...]:
    """Whole numbers from 0 with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 0,255, received {text!r}")
    return tuple(int(part) for part in parts)
