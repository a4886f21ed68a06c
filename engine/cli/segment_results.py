"""Prediction and evaluation for the verb ``segment``, by models of masks and of label maps."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.failures import Failures, name_skipped
from engine.cli.label_sources import known_labels
from engine.cli.output_paths import make_folder
from engine.cli.picture_files import (
    labelled,
    maps_network,
    read_each,
    read_maps,
    spare_drawn,
    viewed,
)
from engine.cli.segment_tiles import predict_in_tiles, thresholded, wants_tiles
from engine.core.errors import InvalidProblemError
from engine.datasets.image_folder import ImageFile, list_images
from engine.datasets.image_names import MASK_SUFFIX
from engine.datasets.label_maps import write_label_map
from engine.datasets.masks import write_mask
from engine.learning.segmentation.model import SegmentationModel, load_segmentation_model
from engine.learning.segmentation.prediction import (
    Prediction,
    evaluate_mask,
    predict_segmentation,
)
from engine.metrics.classes import Confusion, confusion


def predict(args: argparse.Namespace) -> dict[str, Any]:
    """Write the mask or label map of each image, and the probabilities of its pixels.

    Raises
    ------
    InvalidProblemError
        If no file can be used, or a mask or label map drawn by hand would be overwritten.
    """
    if args.threshold is not None and args.readout != "marginal":
        raise InvalidProblemError("--threshold belongs to --readout marginal; leave one out.")
    maps_network(args)  # a fault of the network ends the command, not every picture
    model = load_segmentation_model(args.model)
    files, _ = viewed(list_images(args.images), model.view)
    results = [_result_paths(model, args.out, file) for file in files]
    spare_drawn("mask" if model.is_mask else "label map", args.images, args.out, results)
    make_folder(args.out)
    skipped: Failures = []
    found = read_each(
        files, "Segmenting", args, skipped, lambda file: _predict_one(model, file, args)
    )
    done = [row for _, row in found]
    classes = {} if model.is_mask else {"classes": list(model.classes)}
    figures = {"n_images": len(done), "images": done, "skipped": name_skipped(skipped)}
    return classes | figures


def _result_paths(model: SegmentationModel, folder: Path, file: ImageFile) -> tuple[Path, Path]:
    """Return the paths of a picture's mask or label map, and of its probabilities."""
    if model.is_mask:
        return folder / f"{file.name}{MASK_SUFFIX}.png", folder / f"{file.name}.marginals.npy"
    return folder / f"{file.name}.labels.png", folder / f"{file.name}.probabilities.npy"


def _predict_one(
    model: SegmentationModel, file: ImageFile, args: argparse.Namespace
) -> dict[str, Any]:
    """Write the labels and probabilities of a picture; return its row."""
    path, probabilities = _result_paths(model, args.out, file)
    bounds: dict[str, Any] = {}
    tiles = {}
    if wants_tiles(file, args):
        found = predict_in_tiles(model, file, args, labels=path, probabilities=probabilities)
        counts, tiles = found["counts"], {"tiles": found["tiles"]}
    else:
        image, wants_best = file.read_image(), args.readout == "map"
        maps = read_maps(args, file, image)
        prediction = predict_segmentation(model, image, maps, with_best=wants_best)
        np.save(probabilities, prediction.marginals, allow_pickle=False)
        labels = prediction.read_out(args.readout)
        if args.threshold is not None:
            labels = thresholded(prediction.marginals, args.threshold)
        if model.is_mask:  # last, after the file that marks it as ours
            write_mask(path, labels.view(np.bool_))
        else:
            write_label_map(path, labels, model.values)
        counts = np.bincount(labels.ravel(), minlength=256)
        if prediction.best is not None:
            bounds = {"score": prediction.score, "upper_bound": prediction.upper_bound}
    names = ("mask", "marginals") if model.is_mask else ("labels", "probabilities")
    written = dict(zip(names, (str(path), str(probabilities)), strict=True))
    shares = (counts[: model.n_classes] / counts.sum()).tolist()
    if model.is_mask:
        return {"name": file.name, "foreground": shares[1]} | written | tiles | bounds
    by_class = dict(zip(model.classes, shares, strict=True))
    return {"name": file.name, "shares": by_class} | written | tiles | bounds


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Compare predictions with known masks or label maps, on known pixels only.

    Raises
    ------
    InvalidProblemError
        If no file can be used.
    """
    maps_network(args)
    model = load_segmentation_model(args.model)
    listed, _ = viewed(list_images(args.images, args.masks), model.view)
    source = known_labels(args, listed, model)
    skipped: Failures = []
    wants_best = model.is_mask or args.readout == "map"

    def compared() -> Iterator[tuple[str, Prediction, Any]]:
        for image, truth, maps, name in labelled(source, args, skipped, "Comparing"):
            yield name, predict_segmentation(model, image, maps, with_best=wants_best), truth

    figures = _mask_figures if model.is_mask else _class_figures
    return figures(compared(), model, args.readout) | {
        "skipped": name_skipped([*source.left_out, *skipped])
    }


def _mask_figures(
    compared: Iterator[tuple[str, Prediction, Any]], model: SegmentationModel, readout: str
) -> dict[str, Any]:
    """Return the errors of each mask, and their means."""
    rows = [
        {"name": name} | asdict(evaluate_mask(found, truth.view(np.bool_), readout=readout))
        for name, found, truth in compared
    ]
    figures = [name for name in rows[0] if name != "name"]
    return {
        "images": rows,
        "mean": {name: float(np.mean([row[name] for row in rows])) for name in figures},
    }


def _class_figures(
    compared: Iterator[tuple[str, Prediction, Any]], model: SegmentationModel, readout: str
) -> dict[str, Any]:
    """Return the errors of each label map, and those of all pixels class by class."""
    rows: list[dict[str, Any]] = []
    n = model.n_classes
    total = Confusion(np.zeros((n, n), dtype=np.int64))
    for name, found, truth in compared:
        counts = confusion(found.read_out(readout), truth, n)
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
    }
