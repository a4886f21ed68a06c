"""Parts shared by verbs about pictures: reading files, choosing a size, protecting drawn masks."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import tee
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.cli.failures import Failures, nothing_left
from engine.cli.label_sources import LabelSource
from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.core.progress import Progress
from engine.crf.class_features import ClassLabels
from engine.datasets.image_folder import ImageFile, view_of_set
from engine.datasets.image_names import MAP_ENDINGS
from engine.datasets.onnx_maps import INPUTS, SCORES, OnnxNetwork, open_onnx
from engine.datasets.picture_view import PictureView
from engine.datasets.probability_maps import read_map
from engine.learning.segmentation.boosted_learning import TrainedBoosted
from engine.learning.segmentation.class_learning import TrainedClasses
from engine.learning.segmentation.detail_choice import MOST_PICTURES, choose_detail, sides_to_try
from engine.learning.segmentation.given_maps import Planes
from engine.learning.segmentation.mask_learning import TrainedSegmentation
from engine.learning.segmentation.model import Detail

Read = TypeVar("Read")
Trained = TrainedSegmentation | TrainedBoosted | TrainedClasses
Labelled = tuple[ByteImage, ClassLabels, Planes | None, str]
"""A picture, its labels, its maps and its name."""


def read_each(
    files: Sequence[ImageFile],
    doing: str,
    args: argparse.Namespace,
    skipped: Failures,
    read: Callable[[ImageFile], Read],
) -> Iterator[tuple[ImageFile, Read]]:
    """Yield each file with the result of ``read``; list the files that cannot be used.

    Files are read one at a time, so a folder of any size can be processed.

    Raises
    ------
    InvalidProblemError
        At the end, if no file could be used.
    """
    for number, file in enumerate(files):
        args.on_progress(Progress(f"{doing} {file.name}", number / len(files)))
        try:
            found = read(file)
        except InvalidProblemError as error:
            skipped.append({"name": file.image_path.name, "reason": str(error)})
            continue
        yield file, found
    if len(skipped) == len(files):
        raise InvalidProblemError(nothing_left(skipped))


def labelled(
    source: LabelSource,
    args: argparse.Namespace,
    skipped: Failures,
    doing: str,
    *,
    files: Sequence[ImageFile] | None = None,
) -> Iterator[Labelled]:
    """Yield pictures with labels, maps and names, one at a time; list the unusable files."""

    def read(file: ImageFile) -> Labelled:
        image = file.read_image()
        maps = read_maps(args, file, image)
        labels = source.labels(file, (image.shape[0], image.shape[1]))
        return image, labels, maps, file.name

    listed = source.files if files is None else files
    return (row for _, row in read_each(listed, doing, args, skipped, read))


def map_path(folder: Path, file: ImageFile) -> Path:
    """Return the path of a picture's maps in a folder: the file with the picture's name.

    Raises
    ------
    InvalidProblemError
        If there is none.
    """
    paths = [folder / f"{file.name}{ending}" for ending in MAP_ENDINGS]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise InvalidProblemError(f"{file.name}: no map of it was found in {folder}.")
    return found


def add_map_options(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Declare the options that give maps: a folder of them, or a network that makes them."""
    parser.add_argument(
        "--maps", type=Path, help=f"folder of probabilities of another program{purpose}"
    )
    parser.add_argument(
        "--maps-from",
        type=Path,
        help="ONNX file whose network gives these probabilities from the pictures "
        '(needs onnxruntime: pip install ".[onnx]")',
    )
    parser.add_argument(
        "--maps-input",
        choices=INPUTS,
        help="values of pictures that this network takes: 0 to 1 (default), 0 to 255, or less the "
        "mean of ImageNet",
    )
    parser.add_argument(
        "--maps-scores",
        choices=SCORES[1:],
        help="function that makes probabilities of its scores; by default it gives probabilities",
    )


def maps_network(args: argparse.Namespace) -> OnnxNetwork | None:
    """Return the network that gives the maps of pictures; None without one.

    Raises
    ------
    InvalidProblemError
        If its file cannot be used, or options contradict each other.
    """
    if args.maps_from is None:
        for option in ("maps_input", "maps_scores"):
            if getattr(args, option) is not None:
                name = option.replace("_", "-")
                raise InvalidProblemError(f"--{name} belongs to --maps-from; leave it out.")
        return None
    if args.maps is not None:
        raise InvalidProblemError("--maps and --maps-from give the same maps; leave one out.")
    return _network(args.maps_from, args.maps_input or INPUTS[0], args.maps_scores or SCORES[0])


@lru_cache(maxsize=1)
def _network(path: Path, values: str, scores: str) -> OnnxNetwork:
    return open_onnx(path, values=values, scores=scores)


def read_maps(args: argparse.Namespace, file: ImageFile, image: ByteImage) -> Planes | None:
    """Read the maps of a picture, or compute them; None if none are requested.

    Raises
    ------
    InvalidProblemError
        If the folder has none, they cannot be read, or the network cannot process the picture.
    """
    if (network := maps_network(args)) is not None:
        return network.maps(image)
    return None if args.maps is None else read_map(map_path(args.maps, file))


def viewed(
    files: Sequence[ImageFile], view: PictureView | None = None
) -> tuple[Sequence[ImageFile], PictureView | None]:
    """Return the files with one shared view, and the view: the given one, or that of all of them.

    A model trained without deep pictures has no view: then the view comes from the files.
    """
    view = view or view_of_set(files)
    return [replace(file, view=view) for file in files], view


def some_of(files: Sequence[ImageFile]) -> Sequence[ImageFile]:
    """Return the files on which sizes are tried."""
    return files[:: max(1, len(files) // MOST_PICTURES)]


def choose_side(
    read: Callable[[], Iterator[tuple[ByteImage, NDArray[np.uint8], Planes | None]]],
    n_classes: int,
    most: int,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Set the longest side of models, up to ``most``, to the one that pays on some pictures.

    ``read`` starts reading pictures, their labels and maps. They are read twice, one at a time.
    """
    sides = sides_to_try([labels.shape for _, labels, _ in read()], most=most)
    for_images, for_labels, for_maps = tee(read(), 3)
    choice = choose_detail(
        (image for image, _, _ in for_images),
        (labels for _, labels, _ in for_labels),
        n_classes,
        [Detail(side) for side in sides],
        maps=(maps for _, _, maps in for_maps),
        position=args.position,
        on_progress=args.on_progress,
    )
    args.max_side = choice.detail.max_side
    return {"max_side": args.max_side, "side_errors": choice.by_side}


def training_figures(trained: Trained, tried: dict[str, Any], n_images: int) -> dict[str, Any]:
    """Return the figures that `train` reports for every kind of model."""
    return {
        "loss": trained.loss,
        "held_out_errors": dict(trained.errors),
        "left_out": list(trained.left_out),
        **tried,
        **trained.result.figures(),
        "lambda": trained.model.ridge,
        "n_features": len(trained.model.theta),
        "n_images": n_images,
        "n_pixels": trained.n_pixels,
    }


def spare_drawn(
    what: str, images: Path, folder: Path, results: Sequence[tuple[Path, Path]]
) -> None:
    """Refuse to overwrite masks or label maps that may be drawn by hand.

    Files beside the pictures may always be drawn. Elsewhere, a mask of ours (the first of each pair
    of ``results``) is recognised by the probabilities written with it (the second). One that was
    corrected since then is overwritten like any result of an earlier run.

    Raises
    ------
    InvalidProblemError
        Naming the file.
    """
    folder = folder.resolve()  # in a folder that does not exist yet, ".." leads nowhere
    is_beside = folder == images.resolve()
    for path, mark in results:
        here = folder / path.name
        if here.exists() and (is_beside or not (folder / mark.name).exists()):
            raise InvalidProblemError(
                f"{here}: this {what} would be overwritten by a prediction; choose another folder."
            )
