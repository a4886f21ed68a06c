"""Train on labelled images, segment others, and compare with known masks or label maps."""

import argparse
from pathlib import Path
from typing import Any

from engine.cli import segment_objects
from engine.cli.option_types import number
from engine.cli.picture_files import add_map_options
from engine.cli.segment_results import evaluate, predict
from engine.cli.segment_training import add_training_options, train
from engine.learning.segmentation.prediction import READOUTS

ACTIONS = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "objects": segment_objects.run,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare train, predict, evaluate and objects."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    train = verbs.add_parser("train", help="learn a model from images with masks or label maps")
    _add_images(train)
    add_training_options(train)
    _add_predict(
        verbs.add_parser("predict", help="write the labels and the probabilities of each image")
    )
    evaluate = verbs.add_parser("evaluate", help="compare predictions with known labels")
    _add_images(evaluate)
    evaluate.add_argument("--model", type=Path, required=True, help="model file of train")
    _add_readout(evaluate)
    segment_objects.add_arguments(
        verbs.add_parser("objects", help="count, separate and measure the objects of predictions")
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    _add_images(parser, masks=False)
    parser.add_argument("--model", type=Path, required=True, help="model file of train")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    _add_readout(parser)
    parser.add_argument(
        "--threshold",
        type=number(at_least=0.0, at_most=1.0),
        help="mark what is at least so probable, instead of the larger; of more than two classes, "
        "leave what is less probable unknown",
    )
    parser.add_argument(
        "--tiles",
        action="store_true",
        help="go through every picture in tiles, in flat memory; TIFF files too large to be read "
        "at once always are",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the chosen action; a file that cannot be used is listed and skipped.

    Raises
    ------
    InvalidProblemError
        If no file at all can be used, or the model file or an option is bad.
    """
    return ACTIONS[args.action](args)


def render(result: dict[str, Any]) -> str:
    """Return one line per number, a table of images, and the number of skipped files."""
    lines = []
    for name, value in result.items():
        if name == "held_out_errors":
            lines += [f"error kept out, {loss}: {error:.4f}" for loss, error in value.items()]
        elif name == "left_out":
            lines += [f"left out at the time limit: {work}" for work in value]
        elif name == "side_errors":
            lines += [f"error at {side} pixels: {error:.4f}" for side, error in value.items()]
        elif name == "images":
            lines += [_image_line(row) for row in value]
        elif name == "skipped":
            lines += [f"skipped: {len(value)}"] if value else []  # stderr already named each
        elif name == "classes":
            lines += [_class_line(row) for row in _by_class(value)]
        elif name == "confusion":
            continue  # a table of figures for programs
        elif isinstance(value, dict):
            lines.append(_image_line({"name": name} | value))
        else:
            number = f"{value:.10g}" if isinstance(value, float) else value
            lines.append(f"{name.replace('_', ' ')}: {number}")
    return "\n".join(lines)


def _by_class(classes: Any) -> list[dict[str, Any]]:
    """Return the figures of each class as rows; no rows if only names are known."""
    if not isinstance(classes, dict):
        return []
    return [{"name": name} | figures for name, figures in classes.items()]


def _class_line(row: dict[str, Any]) -> str:
    return f"class {_image_line(row)}"


def _image_line(row: dict[str, Any]) -> str:
    numbers = [f"{key} {value:.4f}" for key, value in row.items() if isinstance(value, float)]
    return "  ".join([str(row["name"]), *numbers])


def _add_images(parser: argparse.ArgumentParser, *, masks: bool = True) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of images")
    if masks:
        parser.add_argument(
            "--masks",
            type=Path,
            help="folder of masks or label maps of the same names; by default NAME.mask.png beside "
            "each image. "
            "Without any masks, outlines are read: annotation files (COCO, labelme, CVAT, VIA, "
            "QuPath, ImageJ, ilastik) in it or beside the images, or one such file or a ZIP of "
            "them",
        )


def _add_readout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--readout",
        choices=READOUTS,
        default="marginal",
        help="label of the larger marginal (default), or the best single labelling",
    )
    add_map_options(parser, ", as in training")
