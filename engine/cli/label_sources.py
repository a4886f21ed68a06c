"""Labels of pictures for models of several classes: from label maps, or from outlines."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.cli.failures import Failures
from engine.cli.label_codes import label_code
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.datasets.annotations.outlines import OutlinedPictures, read_outlines
from engine.datasets.image_folder import ImageFile, annotation_files
from engine.datasets.label_maps import (
    LabelCode,
    checked_code,
    match_values,
    read_label_code,
    read_values,
)


class LabelSource(Protocol):
    """Known classes of the pixels of pictures."""

    @property
    def code(self) -> LabelCode:
        """Return the classes."""

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
class MapLabels:
    """Labels from one label map for each picture."""

    code: LabelCode
    files: Sequence[ImageFile]
    left_out: Failures

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        path = file.mask_path
        values = read_values(path)
        if shape is not None:
            values = match_values(values, shape, name=path.name)
        return self.code.labels(values, path.name)


@dataclass(frozen=True, slots=True)
class OutlineLabels:
    """Labels from outlines; what no outline covers is unknown, as on the pages."""

    code: LabelCode
    files: Sequence[ImageFile]
    left_out: Failures
    outlines: OutlinedPictures

    def labels(self, file: ImageFile, shape: tuple[int, int] | None = None) -> ClassLabels:
        """Return the label of every pixel; see `LabelSource`."""
        if shape is None:
            shape = file.read_image().shape[:2]
        return self.outlines.labels(file.image_path.name, (shape[1], shape[0]), self.code.names)


def has_outlines_only(files: Sequence[ImageFile]) -> bool:
    """Return True if no picture has a mask, and a file beside them may hold outlines."""
    return not any(file.mask_paths for file in files) and any(file.annotations for file in files)


def training_labels(args: argparse.Namespace, files: Sequence[ImageFile]) -> LabelSource:
    """Return the labels that a model is trained on, with the classes that the options name.

    Raises
    ------
    InvalidProblemError
        If no annotation file can be used, or fewer than two classes are named.
    """
    if not has_outlines_only(files):
        return MapLabels(label_code(args, files), files, [])
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


def known_labels(
    args: argparse.Namespace, files: Sequence[ImageFile], code: LabelCode
) -> LabelSource:
    """Return the labels that a model is compared with; classes that it lacks count as unknown.

    Raises
    ------
    InvalidProblemError
        If no annotation file can be used, or none of its classes is the model's.
    """
    if not has_outlines_only(files):
        return MapLabels(code, files, [])
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
