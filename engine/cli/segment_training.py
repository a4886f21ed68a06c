"""Training for the verb ``segment``, on masks, label maps, scribbles and outlines."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.failures import Failures, name_skipped
from engine.cli.label_codes import class_weights
from engine.cli.label_sources import LabelSource, MaskLabels, training_labels, without_counts
from engine.cli.option_types import number, seconds, whole_number_from, whole_numbers
from engine.cli.output_paths import check_writable, open_checkpoint
from engine.cli.picture_files import (
    Trained,
    add_map_options,
    choose_side,
    labelled,
    maps_network,
    some_of,
    training_figures,
    viewed,
)
from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassLabels
from engine.crf.image_grid import MIN_SIDE
from engine.datasets.image_folder import list_images
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_learning import TrainedClasses, train_class_segmentation
from engine.learning.segmentation.defaults import (
    CLASS_UNARIES,
    MAX_SIDE,
    RELATIVE_GAP,
    RHO,
    RIDGE_PER_PIXEL,
    UNARIES,
)
from engine.learning.segmentation.detail_choice import FIRST_SIDE, MOST_LINEAR_SIDE, MOST_SIDE
from engine.learning.segmentation.given_maps import Planes
from engine.learning.segmentation.mask_learning import SOLVERS, train_segmentation
from engine.learning.segmentation.model import CLASS_LOSSES, LOSSES, Detail
from engine.learning.segmentation.network.inference import MOST_WIDTH
from engine.learning.segmentation.network.learning import (
    CARD_STEPS,
    CARD_WIDTH,
    CPU_STEPS,
    CPU_WIDTH,
    EDGE_SECONDS,
    EDGE_STEPS,
    EDGE_WIDTH,
    NetworkOptions,
    edge_network_options,
)
from engine.learning.segmentation.network.training import check_network_available
from engine.learning.segmentation.training_pictures import FOLDS
from engine.metrics.classes import Confusion, class_figures

OF_LINEAR = ("solver", "checkpoint", "cache")
"""Options that choose linear unaries for masks."""

OF_MASKS = ("solver", "cache", "gap", "rho")
"""Options that have no effect on learning from label maps."""


def _side(text: str) -> int:
    """Return a longest side in pixels, or 0 for "auto"."""
    return 0 if text == "auto" else whole_number_from(MIN_SIDE)(text)


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of training, after those of the images."""
    parser.add_argument("--out", type=Path, required=True, help="model file to write (.npz)")
    _add_labels(parser)
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=number(above=0.0),
        help=f"ridge weight; by default {RIDGE_PER_PIXEL:g} times the number of pixels that the "
        "weights are learned from",
    )
    parser.add_argument(
        "--unaries",
        choices=UNARIES,
        help="linear weights of published features (masks only), boosted trees on a multiscale "
        "filter bank (default; of masks linear with --solver, --checkpoint or --cache), or boosted "
        "trees beside a convolutional network, which is learned on a graphics card if there is one "
        'and needs JAX (pip install ".[network]")',
    )
    parser.add_argument(
        "--network-width",
        type=whole_number_from(1, MOST_WIDTH - 1),
        help=f"network: channels of its first level (default {CPU_WIDTH}; with --edges "
        f"{EDGE_WIDTH} unless --max-seconds is below {EDGE_SECONDS:.0f}; on a graphics card "
        f"{CARD_WIDTH}); twice as many take about three times as long",
    )
    parser.add_argument(
        "--network-steps",
        type=whole_number_from(1),
        help=f"network: steps of each of its {FOLDS} parts (default {CPU_STEPS}; with --edges "
        f"{EDGE_STEPS} unless --max-seconds is below {EDGE_SECONDS:.0f}; on a graphics card "
        f"{CARD_STEPS}); fewer take less time",
    )
    parser.add_argument(
        "--loss",
        choices=LOSSES,
        help="surrogate likelihood (with a certificate), univariate or clique (masks only) "
        "logistic, or without edges: trees or network alone, or the mean of both; boosted and "
        "network: by default whichever is best on held-out pictures; linear: likelihood",
    )
    parser.add_argument(
        "--no-position",
        dest="position",
        action="store_false",
        help="boosted and network: the place within the picture does not matter (microscopy)",
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
        "--scale",
        type=number(above=0.0, at_most=1.0),
        help="label maps: size of the model's image relative to the image, instead of --max-side: "
        "1 for full resolution, where things have the same size in all images",
    )
    add_map_options(parser, ", NAME.npy or NAME.tif, that become features beside the image's own")
    _add_solver(parser)


def _add_labels(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say what the values of label maps mean."""
    parser.add_argument(
        "--classes",
        help="classes of label maps: a table (CSV with columns value and class), names of the "
        "values 0, 1, ... with commas between them, or auto for all values there are. By default "
        "the files decide: with more than two values in most of them they are label maps, with "
        "two values or numbered objects they are masks",
    )
    parser.add_argument(
        "--edges",
        action="store_true",
        help="masks: also learn where the edges of objects are, as a class of its own, by which "
        "segment objects --edge 2 separates objects that touch; in a mask that does not number its "
        "objects, pixels that touch are one object",
    )
    parser.add_argument(
        "--unknown",
        type=whole_numbers,
        default=(),
        help="values of pixels without a known class, separated by commas: pixels that "
        "scribbles leave unpainted, or pixels to ignore (default 255, unless it is a class)",
    )
    parser.add_argument(
        "--class-weights",
        help="label maps: how much a pixel of each class counts: numbers with commas between "
        "them, or balanced, by which all classes count alike",
    )


def _add_solver(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the solver that fits the weights, and its limits."""
    parser.add_argument(
        "--solver", choices=SOLVERS, help="linear, likelihood: auto (default) solves in theta"
    )
    parser.add_argument(
        "--gap",
        type=number(above=0.0),
        help="masks: certified relative gap to reach with the likelihood, which this option asks "
        f"for (default {RELATIVE_GAP:g})",
    )
    parser.add_argument("--max-seconds", type=seconds, help="stop after this time, seconds")
    parser.add_argument("--checkpoint", type=Path, help="resume point after an interrupted run")
    parser.add_argument("--cache", type=Path, help="folder that keeps features from run to run")


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Train a model on masks or label maps, whichever there are, and write it.

    Raises
    ------
    InvalidProblemError
        If no file can be used or an option is bad.
    """
    if args.unaries == "network":
        check_network_available()
    elif args.network_width is not None:
        raise InvalidProblemError("--network-width belongs to --unaries network; leave it out.")
    elif args.network_steps is not None:
        raise InvalidProblemError("--network-steps belongs to --unaries network; leave it out.")
    elif args.loss in ("network", "mean"):
        raise InvalidProblemError(f"--loss {args.loss} belongs to --unaries network; leave it out.")
    has_maps = maps_network(args) is not None or args.maps is not None
    check_writable(args.out)
    checkpoint = open_checkpoint(args.checkpoint)
    files, view = viewed(list_images(args.images, args.masks))
    source = training_labels(args, files)
    unaries = _unaries(args, source)
    weights = _class_weights(args, source)
    tried = {} if args.max_side else _choose_side(args, source, unaries)
    skipped: Failures = []
    rows = labelled(source, args, skipped, "Reading")
    parts = tee(rows, 3)  # read on demand: holds one picture
    images, labels = (row[0] for row in parts[0]), (row[1] for row in parts[1])
    shared: dict[str, Any] = {
        "maps": (row[2] for row in parts[2]) if has_maps else None,
        "ridge": args.ridge,
        "loss": args.loss,
        "max_seconds": args.max_seconds,
        "on_progress": args.on_progress,
        "rng": np.random.default_rng(args.seed or 0),
    }
    if unaries == "network":
        usual = edge_network_options(args.max_seconds) if args.edges else NetworkOptions()
        shared["network"] = NetworkOptions(
            args.network_width or usual.width, args.network_steps or usual.steps
        )
    trained: Trained
    if source.code is None:
        shared |= {
            "rho": RHO if args.rho is None else args.rho,
            "max_side": args.max_side,
            "relative_gap": RELATIVE_GAP if args.gap is None else args.gap,
            "loss": args.loss or ("likelihood" if args.gap is not None else None),
        }
        masks = (one.view(np.bool_) for one in labels)
        if unaries != "linear":
            own = {"position": args.position, "checkpoint": checkpoint}
            trained = train_boosted_segmentation(images, masks, **own, **shared)
        else:
            shared |= {"solver": args.solver or "auto", "cache": args.cache}
            trained = train_segmentation(images, masks, checkpoint=checkpoint, **shared)
            trained.result.check_learned()
    else:
        trained = train_class_segmentation(
            images,
            labels,
            source.code.names,
            class_weights=weights,
            is_smooth=not args.edges,
            position=args.position,
            detail=Detail(args.max_side, args.scale or 0.0),
            values=source.code.values,
            unknown=source.code.unknown,
            checkpoint=checkpoint,
            **shared,
        )
    replace(trained.model, view=view).save(args.out)
    return {
        "labels": source.kind,
        "unaries": unaries,
        **training_figures(trained, tried, len(source.files) - len(skipped)),
        **_figures_of_labels(source, trained),
        "skipped": name_skipped([*source.left_out, *skipped]),
    }


def _unaries(args: argparse.Namespace, source: LabelSource) -> str:
    """Return the kind of unaries, after refusing options that have no effect with them."""
    if args.unaries == "linear" and not args.position:
        raise InvalidProblemError("--no-position belongs to --unaries boosted; leave it out.")
    if source.code is not None:
        for option in OF_MASKS:
            if getattr(args, option) is not None:
                raise InvalidProblemError(f"--{option} does not go with label maps; leave it out.")
        if args.unaries not in (None, *CLASS_UNARIES):
            raise InvalidProblemError(
                f"Classes are learned by boosted trees: --unaries {args.unaries} does not go with "
                "label maps; leave it out."
            )
        if args.loss is not None and args.loss not in CLASS_LOSSES:
            raise InvalidProblemError(
                f"--loss {args.loss} does not go with label maps; choose one of "
                f"{', '.join(CLASS_LOSSES)}."
            )
        return args.unaries or "boosted"
    is_linear = any(getattr(args, option) for option in OF_LINEAR)
    unaries: str = args.unaries or ("linear" if is_linear else "boosted")
    if unaries == "network" and (args.solver or args.cache):
        raise InvalidProblemError(
            "--solver and --cache belong to --unaries linear; leave them out."
        )
    if unaries == "boosted" and is_linear:
        raise InvalidProblemError(
            "--solver, --checkpoint and --cache belong to --unaries linear; leave them out."
        )
    if unaries == "linear" and not args.position:
        raise InvalidProblemError("--no-position belongs to --unaries boosted; leave it out.")
    return unaries


def _choose_side(args: argparse.Namespace, source: LabelSource, unaries: str) -> dict[str, Any]:
    """Set the longest side by trying several on some pictures; return the errors of each."""
    some = without_counts(source), some_of(source.files)

    def read_some() -> Iterator[tuple[ByteImage, ClassLabels, Planes | None]]:
        return (row[:3] for row in labelled(some[0], args, [], "Reading", files=some[1]))

    n_labels = 2 if source.code is None else len(source.code.names)
    most = MOST_LINEAR_SIDE if unaries == "linear" else MOST_SIDE
    return choose_side(read_some, n_labels, most, args)


def _class_weights(args: argparse.Namespace, source: LabelSource) -> list[float] | None:
    """Return the weight of a pixel of each class, if the options give one."""
    if source.code is None:
        return None
    return class_weights(args.class_weights, _readable(source), len(source.code.names))


def _readable(source: LabelSource) -> Iterator[ClassLabels]:
    """Yield the labels of every picture that has readable ones."""
    for file in source.files:
        with suppress(InvalidProblemError):  # the error names it when it is read for training
            yield source.labels(file)


def _figures_of_labels(source: LabelSource, trained: Trained) -> dict[str, Any]:
    """Return what the labels held: marked pixels and objects, or known pixels of each class."""
    if isinstance(source, MaskLabels):
        return dict(source.counts or {})
    if not isinstance(trained, TrainedClasses):
        return {}
    names = trained.model.classes
    known = dict(zip(names, trained.n_known, strict=True))
    return {"known_pixels": known, "kept": _kept(trained.kept, names)}


def _kept(counts: Sequence[Confusion], names: Sequence[str]) -> dict[str, Any]:
    """Return the figures of held-out pictures; none if there were too few."""
    figures = class_figures(counts)
    if figures is None:
        return {}
    overlaps = [row["iou"] for row in figures.classes]
    by_class = {n: None if v != v else v for n, v in zip(names, overlaps, strict=True)}
    kept = {"n_images": figures.n_pictures, "error": figures.error, "iou": figures.overlap}
    return kept | {"iou_by_class": by_class}
