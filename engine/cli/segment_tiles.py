"""Segmentation of pictures larger than memory: `segment predict` in tiles."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cli.picture_files import map_path, maps_network
from engine.core.array_file import ArrayFile
from engine.core.errors import InvalidProblemError
from engine.core.progress import Progress
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.crf.picture_windows import ArraySource, MapSource, PictureSource
from engine.datasets.image_folder import ImageFile
from engine.datasets.label_maps import label_palette, label_places
from engine.datasets.large_pictures import LargeTiff, is_large
from engine.datasets.onnx_maps import open_onnx_maps
from engine.datasets.png_rows import write_png_rows
from engine.datasets.probability_maps import open_map
from engine.learning.segmentation.given_maps import check_count, check_proportions
from engine.learning.segmentation.model import SegmentationModel
from engine.learning.segmentation.prediction import labels_of
from engine.learning.segmentation.tiled_prediction import BAND_PIXELS, NO_MAPS, TiledPrediction

MASK_PLACES = np.array([0, 255], dtype=np.uint8)
"""Value that a written mask holds for each label."""


def wants_tiles(file: ImageFile, args: argparse.Namespace) -> bool:
    """Return True if a picture is processed in tiles: it is too large, or tiles are requested."""
    return bool(args.tiles) or is_large(file.image_path)


def predict_in_tiles(
    model: SegmentationModel,
    file: ImageFile,
    args: argparse.Namespace,
    *,
    labels: Path,
    probabilities: Path,
) -> dict[str, Any]:
    """Write map and probabilities of a picture of any size, with the memory of one tile.

    Raises
    ------
    InvalidProblemError
        If the best single labelling was requested, which needs the whole at once, the picture
        cannot be read in parts, or its maps do not fit it or the model.
    """
    name = file.image_path.name
    if args.readout != "marginal":
        raise InvalidProblemError(
            f"{name}: the best single labelling needs the whole picture at once; leave out "
            "--readout for pictures in tiles."
        )

    def report(done: int, total: int) -> None:
        args.on_progress(Progress(f"Segmenting {name}: tile {done} of {total}", done / total))

    with _source(file) as source:
        maps: MapSource = NO_MAPS
        if (network := maps_network(args)) is not None:
            maps = open_onnx_maps(network, source)
        elif args.maps is not None:
            maps = open_map(map_path(args.maps, file))
            check_proportions(name, maps.shape, source.shape)
        check_count(model.n_maps, maps.n_planes)
        work = TiledPrediction(model, source, maps, on_tile=report, folder=probabilities.parent)
        with ArrayFile(probabilities, (*source.shape, *work.depth)) as out:
            found = work.run(out.write)
            counts = np.zeros(256, dtype=np.int64)
            bands = _bands(out, model, args.threshold, counts)
            palette = None if model.is_mask else label_palette(model.values)
            write_png_rows(labels, source.shape, bands, palette)  # last, after its mark
    return {"shape": list(source.shape), "tiles": found.n_tiles, "counts": counts}


@contextmanager
def _source(file: ImageFile) -> Iterator[PictureSource]:
    if is_large(file.image_path):
        with LargeTiff(file.image_path, file.view) as source:
            yield source
    else:
        yield ArraySource(file.read_image())


def _bands(
    out: ArrayFile, model: SegmentationModel, threshold: float | None, counts: NDArray[np.int64]
) -> Iterator[NDArray[np.uint8]]:
    """Yield rows of the map, read back from the probabilities; ``counts`` gets pixels by label."""
    rows, columns = out.shape[:2]
    places = MASK_PLACES if model.is_mask else label_places(model.values)
    step = max(1, BAND_PIXELS // (columns * max(1, int(np.prod(out.shape[2:])))))
    for top in range(0, rows, step):
        part = np.asarray(out.read(top, 0, min(step, rows - top), columns), dtype=np.float32)
        labels = labels_of(part) if threshold is None else thresholded(part, threshold)
        counts += np.bincount(labels.ravel(), minlength=256)
        yield places[labels]


def thresholded(marginals: NDArray[np.float32], threshold: float) -> ClassLabels:
    """Return the labels whose probability reaches a threshold; less probable ones are unknown.

    Of two labels, the second is given where it reaches the threshold, and the first elsewhere.
    """
    if marginals.ndim == 2:
        return (marginals >= threshold).view(np.uint8)
    if marginals.shape[2] == 2:
        return (marginals[:, :, 1] >= threshold).view(np.uint8)
    is_sure = marginals.max(axis=2) >= threshold
    return np.where(is_sure, labels_of(marginals), UNKNOWN).astype(np.uint8)
