"""Classes and their weights, from options or from the label maps of a folder."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES, UNKNOWN, ClassLabels
from engine.datasets.image_folder import ImageFile
from engine.datasets.label_maps import (
    LabelCode,
    checked_code,
    read_label_code,
    read_values,
    value_in_words,
)


def label_code(args: argparse.Namespace, files: Sequence[ImageFile]) -> LabelCode:
    """Return the classes that --classes and --unknown name, or those of all values in the files.

    Without --unknown, 255 is unknown, as in VOC and Cityscapes, unless it is a class.
    """
    code = _named_code(args, files)
    if args.unknown or UNKNOWN in (*code.values, *code.unknown):
        return code
    return replace(code, unknown=(*code.unknown, UNKNOWN))


def _named_code(args: argparse.Namespace, files: Sequence[ImageFile]) -> LabelCode:
    """Return the classes and unknown values that the options name."""
    given = args.classes or "auto"
    if given.casefold().endswith(".csv"):
        return read_label_code(Path(given), args.unknown)
    if given != "auto":
        names = [name.strip() for name in given.split(",")]
        values = range(len(names) + len(args.unknown))
        free = [value for value in values if value not in args.unknown][: len(names)]
        return checked_code(names, free, args.unknown)
    found: set[int] = set()
    for file in files:
        try:
            found.update(int(value) for value in np.unique(read_values(file.mask_path)))
        except InvalidProblemError:
            continue  # the error names it when the file is read for training
        if len(found) > MOST_CLASSES + max(len(args.unknown), 1):
            raise InvalidProblemError(
                f"--classes auto: there are more than {MOST_CLASSES} values; name the classes in "
                "a table."
            )
    used = sorted(found - set(args.unknown))
    if not args.unknown and len(used) > 2 and UNKNOWN in used:
        used.remove(UNKNOWN)
    names = [value_in_words(value) for value in used]
    if len(used) == 2 and used[0] == 0:
        names = ["background", "foreground"]
    return checked_code(names, used, args.unknown)


def class_weights(
    given: str | None, labels: Iterable[ClassLabels], n_classes: int
) -> list[float] | None:
    """Return one weight per class; "balanced" counts the pixels of all ``labels``."""
    if given is None:
        return None
    if given != "balanced":
        try:
            return [float(word) for word in given.split(",")]
        except ValueError as error:
            raise InvalidProblemError(
                f"--class-weights: expected numbers with commas between them, received {given!r}."
            ) from error
    counts = np.zeros(256, dtype=np.int64)
    for one in labels:
        counts += np.bincount(one.ravel(), minlength=256)
    own = np.maximum(counts[:n_classes], 1)
    return [float(weight) for weight in own.sum() / (len(own) * own)]
