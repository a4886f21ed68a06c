"""Train on labelled images, segment others, and compare with known masks."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli import segment_classes, segment_objects
from engine.cli.failures import Failures, name_skipped
from engine.cli.label_sources import has_outlines_only
from engine.cli.option_types import number, seconds, whole_number_from
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
from engine.crf.class_features import ClassLabels
from engine.crf.image_grid import MIN_SIDE
from engine.datasets.image_folder import ImageFile, list_images
from engine.datasets.image_names import MASK_SUFFIX
from engine.datasets.masks import MaskArray, match_mask, write_mask
from engine.learning.segmentation.boosted_learning import TrainedBoosted, train_boosted_segmentation
from engine.learning.segmentation.boosted_model import LOSSES
from engine.learning.segmentation.class_model import is_class_model
from engine.learning.segmentation.defaults import (
    MAX_SIDE,
    RELATIVE_GAP,
    RHO,
    RIDGE_PER_PIXEL,
)
from engine.learning.segmentation.detail_choice import FIRST_SIDE, MOST_LINEAR_SIDE, MOST_SIDE
from engine.learning.segmentation.given_maps import Planes
from engine.learning.segmentation.mask_learning import (
    SOLVERS,
    TrainedSegmentation,
    train_segmentation,
)
from engine.learning.segmentation.mask_model import AnySegmentationModel, load_segmentation_model
from engine.learning.segmentation.mask_prediction import (
    READOUTS,
    evaluate_mask,
    predict_segmentation,
)

Labelled = tuple[ByteImage, MaskArray, Planes | None]


def _side(text: str) -> int:
    """Return a longest side in pixels, or 0 for "auto"."""
    return 0 if text == "auto" else whole_number_from(MIN_SIDE)(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare train, predict, evaluate and objects."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_train(verbs.add_parser("train", help="learn a model from images with masks"))
    _add_predict(verbs.add_parser("predict", help="write the mask and the marginals of each image"))
    _add_evaluate(verbs.add_parser("evaluate", help="compare predictions with known masks"))
    segment_objects.add_arguments(
        verbs.add_parser("objects", help="count, separate and measure the objects of predictions")
    )


def _add_train(parser: argparse.ArgumentParser) -> None:
    _add_images(parser)
    parser.add_argument("--out", type=Path, required=True, help="model file to write (.npz)")
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=number(above=0.0),
        help=f"ridge weight; by default {RIDGE_PER_PIXEL:g} times the number of pixels that the "
        "weights are learned from",
    )
    parser.add_argument(
        "--unaries",
        choices=("linear", "boosted"),
        help="linear weights of published features, or boosted trees on a multiscale filter bank "
        "(default; linear with --solver, --checkpoint or --cache)",
    )
    parser.add_argument(
        "--loss",
        choices=LOSSES,
        help="surrogate likelihood (with a certificate), univariate or clique logistic, or trees "
        "alone without edges; boosted: by default the one with the lowest error on images kept "
        "from it; linear: likelihood",
    )
    parser.add_argument(
        "--no-position",
        dest="position",
        action="store_false",
        help="boosted: the place within the picture does not matter (microscopy)",
    )
    parser.add_argument(
        "--rho",
        type=number(above=0.0, at_most=0.5),
        help=f"masks: edge weight above 0 and at most 0.5 (default {RHO:g})",
    )
    parser.add_argument(
        "--max-side",
        type=_side,
        default=MAX_SIDE,
        help="longest side within the model, pixels; larger images are shrunk (default "
        f"{MAX_SIDE}); auto tries sizes from {FIRST_SIDE} on and takes a finer one while it makes "
        f"clearly fewer mistakes, up to full size (linear: {MOST_LINEAR_SIDE})",
    )
    parser.add_argument(
        "--maps",
        type=Path,
        help="folder of probabilities of another program, NAME.npy or NAME.tif, that become "
        "features beside the image's own",
    )
    _add_solver(parser)
    segment_classes.add_training_options(parser)


def _add_solver(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the solver that fits the weights, and its limits."""
    parser.add_argument(
        "--solver", choices=SOLVERS, help="linear, likelihood: auto (default) solves in theta"
    )
    parser.add_argument(
        "--gap",
        type=number(above=0.0),
        help="certified relative gap to reach with the likelihood, which this option asks for "
        f"(default {RELATIVE_GAP:g})",
    )
    parser.add_argument("--max-seconds", type=seconds, help="stop after this time, seconds")
    parser.add_argument("--checkpoint", type=Path, help="resume point after an interrupted run")
    parser.add_argument("--cache", type=Path, help="folder that keeps features from run to run")


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


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_images(parser)
    parser.add_argument("--model", type=Path, required=True, help="model file of train")
    _add_readout(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the chosen action; a file that cannot be used is listed and skipped.

    Raises
    ------
    InvalidProblemError
        If no file at all can be used, or the model file or an option is bad.
    """
    if args.action == "train":
        files = list_images(args.images, args.masks)
        has_classes = segment_classes.wants_classes(args) or has_outlines_only(files)
        return segment_classes.train(args) if has_classes else _train(args)
    if args.action == "objects":
        return segment_objects.run(args)
    if args.action == "predict" and args.threshold is not None and args.readout != "marginal":
        raise InvalidProblemError("--threshold belongs to --readout marginal; leave one out.")
    if is_class_model(args.model):
        actions = {"predict": segment_classes.predict, "evaluate": segment_classes.evaluate}
    else:
        actions = {"predict": _predict, "evaluate": _evaluate}
    return actions[args.action](args)


def render(result: dict[str, Any]) -> str:
    """Return one line per number, a table of images, and the number of skipped files."""
    lines = []
    for name, value in result.items():
        if name == "held_out_errors":
            lines += [f"error kept out, {loss}: {error:.4f}" for loss, error in value.items()]
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
            help="folder of masks of the same names; by default NAME.mask.png beside each image. "
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
    parser.add_argument(
        "--maps", type=Path, help="folder of probabilities of another program, as in training"
    )


def _train(args: argparse.Namespace) -> dict[str, Any]:
    check_writable(args.out)
    only_linear = args.solver or args.checkpoint or args.cache
    unaries = args.unaries or ("linear" if only_linear else "boosted")
    if unaries == "boosted" and only_linear:
        raise InvalidProblemError(
            "--solver, --checkpoint and --cache belong to --unaries linear; leave them out."
        )
    if unaries == "linear" and not args.position:
        raise InvalidProblemError("--no-position belongs to --unaries boosted; leave it out.")
    checkpoint = open_checkpoint(args.checkpoint)
    files, view = viewed(list_images(args.images, args.masks))
    tried = _settle_side(files, args, has_trees=unaries == "boosted")
    skipped: Failures = []
    understood = {"marked_pixels": 0, "objects": 0}
    read = _labelled(files, args, skipped, understood)
    parts = tee(read, 3)  # read on demand: holds one picture
    images, masks = (row[0] for row in parts[0]), (row[1] for row in parts[1])
    shared: dict[str, Any] = {
        "maps": None if args.maps is None else (row[2] for row in parts[2]),
        "ridge": args.ridge,
        "rho": RHO if args.rho is None else args.rho,
        "max_side": args.max_side,
        "relative_gap": RELATIVE_GAP if args.gap is None else args.gap,
        "max_seconds": args.max_seconds,
        "on_progress": args.on_progress,
        "rng": np.random.default_rng(args.seed or 0),
        "loss": args.loss or ("likelihood" if args.gap is not None else None),
    }
    trained: TrainedSegmentation | TrainedBoosted
    if unaries == "boosted":
        trained = train_boosted_segmentation(images, masks, position=args.position, **shared)
    else:
        trained = train_segmentation(
            images,
            masks,
            solver=args.solver or "auto",
            checkpoint=checkpoint,
            cache=args.cache,
            **shared,
        )
        trained.result.check_learned()
    trained.model.save(args.out, view)
    return {
        "unaries": unaries,
        **training_figures(trained, tried, len(files) - len(skipped)),
        **understood,
        "skipped": name_skipped(skipped),
    }


def _settle_side(
    files: Sequence[ImageFile], args: argparse.Namespace, *, has_trees: bool
) -> dict[str, Any]:
    """Choose the longest side if the options leave it open; return the sides tried."""
    if args.max_side:
        return {}
    some, most = some_of(files), MOST_SIDE if has_trees else MOST_LINEAR_SIDE

    def read_some() -> Iterator[tuple[ByteImage, ClassLabels, Planes | None]]:
        return ((row[0], row[1].view(np.uint8), row[2]) for row in _labelled(some, args, []))

    return choose_side(read_some, 2, most, args)


def _labelled(
    files: Sequence[ImageFile],
    args: argparse.Namespace,
    skipped: Failures,
    understood: dict[str, int] | None = None,
) -> Iterator[Labelled]:
    """Yield pictures, masks and maps, one at a time; ``understood`` counts the marked objects."""

    def read(file: ImageFile) -> Labelled:
        image = file.read_image()
        reading = file.understand_mask()
        shape = image.shape[0], image.shape[1]
        mask = match_mask(reading.mask, shape, name=file.mask_path.name)
        found = image, mask, read_maps(args.maps, file)
        if understood is not None:
            understood["marked_pixels"] += reading.n_pixels
            understood["objects"] += reading.n_objects
        return found

    return (row for _, row in read_each(files, "Reading", args, skipped, read))


def _with_mask(file: ImageFile, maps: Path | None) -> Labelled:
    image = file.read_image()
    mask = file.read_mask((image.shape[0], image.shape[1]))
    return image, mask, read_maps(maps, file)


def _predict(args: argparse.Namespace) -> dict[str, Any]:
    model = load_segmentation_model(args.model)
    files, _ = viewed(list_images(args.images), args.model)
    results = [_result_paths(args.out, file) for file in files]
    spare_drawn("mask", args.images, args.out, results)
    make_folder(args.out)
    skipped: Failures = []
    found = read_each(
        files, "Segmenting", args, skipped, lambda file: _predict_one(model, file, args)
    )
    done = [row for _, row in found]
    return {"n_images": len(done), "images": done, "skipped": name_skipped(skipped)}


def _result_paths(folder: Path, file: ImageFile) -> tuple[Path, Path]:
    """Return the paths of a picture's mask and marginals."""
    return folder / f"{file.name}{MASK_SUFFIX}.png", folder / f"{file.name}.marginals.npy"


def _predict_one(
    model: AnySegmentationModel, file: ImageFile, args: argparse.Namespace
) -> dict[str, Any]:
    mask_path, marginals_path = _result_paths(args.out, file)
    if wants_tiles(file, args):
        found = predict_in_tiles(model, file, args, labels=mask_path, probabilities=marginals_path)
        return {
            "name": file.name,
            "foreground": float(found["counts"][1] / found["counts"].sum()),
            "mask": str(mask_path),
            "marginals": str(marginals_path),
            "tiles": found["tiles"],
        }
    prediction = predict_segmentation(model, file.read_image(), read_maps(args.maps, file))
    np.save(marginals_path, prediction.marginals, allow_pickle=False)
    mask = prediction.read_out(args.readout)
    if args.threshold is not None:
        mask = np.asarray(prediction.marginals >= args.threshold)
    write_mask(mask_path, mask)  # written last: the probabilities mark the mask as ours
    return {
        "name": file.name,
        "foreground": float(mask.mean()),
        "mask": str(mask_path),
        "marginals": str(marginals_path),
    }


def _evaluate(args: argparse.Namespace) -> dict[str, Any]:
    model = load_segmentation_model(args.model)
    files, _ = viewed(list_images(args.images, args.masks), args.model)
    if has_outlines_only(files):
        raise InvalidProblemError(
            "This model was trained on masks, and outlines say nothing of what they leave "
            "uncovered. Compare it with mask pictures."
        )
    skipped: Failures = []

    def compare(file: ImageFile) -> dict[str, Any]:
        image, mask, maps = _with_mask(file, args.maps)
        prediction = predict_segmentation(model, image, maps)
        errors = evaluate_mask(prediction, mask, readout=args.readout)
        return {"name": file.name} | asdict(errors)

    rows = [row for _, row in read_each(files, "Comparing", args, skipped, compare)]
    names = [name for name in rows[0] if name != "name"]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in names}
    return {"images": rows, "mean": mean, "skipped": name_skipped(skipped)}
