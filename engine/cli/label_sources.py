"""Labels of pictures: from masks, from label maps, or from outlines."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.cli.failures import Failures
from engine.cli.label_codes import label_code
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.datasets.annotations.outlines import OutlinedPictures, read_outlines
from engine.datasets.image_folder import ImageFile, annotation_files
from engine.datasets.label_maps import (
    LabelCode,
    checked_code,
    count_labels,
    match_values,
    read_label_code,
    read_values,
)
from engine.datasets.masks import NO_TWO_VALUES, match_mask, understand_mask
from engine.datasets.object_edges import EDGE_CLASSES, edges_of
from engine.learning.segmentation.model import SegmentationModel

MAX_COMPARED = 24
"""Number of masks that are read to find out whether a folder holds masks or label maps."""


class LabelSource(Protocol):
    """Known labels of the pixels of pictures."""

    @property
    def kind(self) -> str:
        """Return what the labels were read from: "masks", "label maps" or "outlines"."""

    @property
    def code(self) -> LabelCode | None:
        """Return the classes; None for masks."""

    @property
    def files(self) -> Sequence[ImageFile]:
        """Return the pictures that may have labels."""

    @property
    def left_out(self) -> Failures:
        """Return the names and reasons of files that cannot be used for any picture."""

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel, at the size of the picture if that is given.

        Raises
        ------
        InvalidProblemError
            If the labels cannot be read, or belong to another picture.
        """


@dataclass(frozen=True, slots=True)
class MaskLabels:
    """Labels from one mask for each picture: 1 where it marks, 0 elsewhere.

    ``counts`` gets the numbers of marked pixels and objects of the masks read; None counts none.
    """

    files: Sequence[ImageFile]
    counts: dict[str, int] | None = None
    kind: str = "masks"

    @property
    def code(self) -> None:
        """Return None: masks have no table of classes."""

    @property
    def left_out(self) -> Failures:
        """Return no files: each has its own mask or none."""
        return []

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        reading = file.understand_mask()
        mask = reading.mask
        if shape is not None:
            mask = match_mask(mask, shape, name=file.mask_path.name)
        if self.counts is not None:
            self.counts["marked_pixels"] += reading.n_pixels
            self.counts["objects"] += reading.n_objects
        return mask.view(np.uint8)


@dataclass(frozen=True, slots=True)
class MapLabels:
    """Labels from one label map for each picture."""

    code: LabelCode
    files: Sequence[ImageFile]
    left_out: Failures
    kind: str = "label maps"

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        path = file.mask_path
        values = read_values(path)
        if shape is not None:
            values = match_values(values, shape, name=path.name)
        return self.code.labels(values, path.name)


@dataclass(frozen=True, slots=True)
class EdgeLabels:
    """Labels from masks: background, inside, and edge of an object.

    In a mask that does not number its objects, pixels that touch are one object.
    """

    files: Sequence[ImageFile]
    kind: str = "objects and their edges"

    @property
    def code(self) -> LabelCode:
        """Return the three classes; none of their values is unknown."""
        return checked_code(EDGE_CLASSES, range(len(EDGE_CLASSES)))

    @property
    def left_out(self) -> Failures:
        """Return no files: each has its own mask or none."""
        return []

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        numbers = file.understand_mask().numbers
        if shape is not None:
            numbers = match_values(numbers, shape, name=file.mask_path.name)
        return edges_of(numbers)


@dataclass(frozen=True, slots=True)
class OutlineLabels:
    """Labels from outlines; what no outline covers is unknown, as on the pages."""

    code: LabelCode
    files: Sequence[ImageFile]
    left_out: Failures
    outlines: OutlinedPictures
    kind: str = "outlines"

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        if shape is None:
            shape = file.read_image().shape[:2]
        return self.outlines.labels(file.image_path.name, (shape[1], shape[0]), self.code.names)


def has_outlines_only(files: Sequence[ImageFile]) -> bool:
    """Return True if no picture has a mask, and a file beside them may hold outlines."""
    return not any(file.mask_paths for file in files) and any(file.annotations for file in files)


def holds_label_maps(files: Sequence[ImageFile]) -> bool:
    """Return True if at least half of the readable masks of a folder need more than two labels.

    An even sample is read. Instance maps, which number their objects, are masks.
    """
    n_masks = n_maps = 0
    for file in files[:: max(1, -(-len(files) // MAX_COMPARED))]:
        try:
            understand_mask(file.mask_path)
            n_masks += 1
        except InvalidProblemError as error:
            if NO_TWO_VALUES in str(error) and count_labels(file.mask_path) > 2:
                n_maps += 1
    return n_maps > 0 and n_maps >= n_masks


def training_labels(args: argparse.Namespace, files: Sequence[ImageFile]) -> LabelSource:
    """Return the labels that a model is trained on, with the classes that the options name.

    Options about classes ask for label maps; without any, the masks decide.

    Raises
    ------
    InvalidProblemError
        If no annotation file can be used, fewer than two classes are named, or edges are asked of
        outlines.
    """
    if args.edges:
        if args.classes is not None or args.unknown:
            raise InvalidProblemError(
                "--edges names its own classes; leave out --classes, --unknown."
            )
        if has_outlines_only(files):
            raise InvalidProblemError(
                "--edges learns from masks, and these pictures have only outlines."
            )
        return EdgeLabels(files)
    if not has_outlines_only(files):
        asked = (args.classes, args.class_weights, args.scale)
        is_asked = any(option is not None for option in asked) or bool(args.unknown)
        if is_asked or holds_label_maps(files):
            return MapLabels(label_code(args, files), files, [])
        return MaskLabels(files, {"marked_pixels": 0, "objects": 0})
    if args.unknown:
        raise InvalidProblemError("--unknown does not go with outlines; leave it out.")
    outlines = _outlines(args, files)
    if args.classes and args.classes != "auto":
        names = _named(args.classes)
        known = {name.casefold() for name in names}
        strange = [name for name in outlines.classes if name.casefold() not in known]
        if strange:
            raise InvalidProblemError(
                f"The annotations name {strange[0]}, which is none of the {len(names)} classes."
            )
    else:
        names = list(outlines.classes)
    if len(names) < 2:
        raise InvalidProblemError(
            f"The annotations name {f'one class, {names[0]}' if names else 'no class'}. Outline at "
            "least two: what no outline covers is unknown, not background."
        )
    return _outline_labels(checked_code(names, range(len(names)), (UNKNOWN,)), outlines, files)


def without_counts(source: LabelSource) -> LabelSource:
    """Return the same labels, without counting what masks mark."""
    return replace(source, counts=None) if isinstance(source, MaskLabels) else source


def known_labels(
    args: argparse.Namespace, files: Sequence[ImageFile], model: SegmentationModel
) -> LabelSource:
    """Return the labels that a model is compared with; classes that it lacks count as unknown.

    Raises
    ------
    InvalidProblemError
        If no annotation file can be used, none of its classes is the model's, or the model was
        trained on masks and there are only outlines.
    """
    has_outlines, code = has_outlines_only(files), model.code
    if code is None:
        if has_outlines:
            raise InvalidProblemError(
                "This model was trained on masks, and outlines say nothing of what they leave "
                "uncovered. Compare it with mask pictures."
            )
        return MaskLabels(files)
    if not has_outlines:
        return EdgeLabels(files) if code.names == EDGE_CLASSES else MapLabels(code, files, [])
    outlines = _outlines(args, files)
    if not {name.casefold() for name in outlines.classes} & {n.casefold() for n in code.names}:
        raise InvalidProblemError(
            f"The annotations name {', '.join(outlines.classes)}, none of the model's classes: "
            f"{', '.join(code.names)}."
        )
    return _outline_labels(code, outlines, files)


def _outlines(args: argparse.Namespace, files: Sequence[ImageFile]) -> OutlinedPictures:
    by_name = {file.image_path.name: file for file in files}

    def size_of(name: str) -> tuple[int, int]:
        height, width = by_name[name].read_image().shape[:2]
        return width, height

    return read_outlines(annotation_files(args.images, args.masks), by_name, size_of)


def _outline_labels(
    code: LabelCode, outlines: OutlinedPictures, files: Sequence[ImageFile]
) -> OutlineLabels:
    outlined = [file for file in files if file.image_path.name in outlines.shapes]
    left_out = [{"name": name, "reason": reason} for name, reason in outlines.left_out]
    return OutlineLabels(code, outlined, left_out, outlines)


def _named(given: str) -> Sequence[str]:
    if given.casefold().endswith(".csv"):
        return read_label_code(Path(given)).names
    return [name.strip() for name in given.split(",")]
