"""Reader of labels in an ilastik project of pixel classification, by the image of each lane."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import MISFITS, MOST_AREA, Annotation, filled

ENDING = ".ilp"
MOST_NOTED = 10_000
_HEAD = b"\x89HDF\r\n\x1a\n"
_SLICE = re.compile(r"(\d+):(\d+)")
_USUAL_AXES = "tzyxc"


def read_ilastik(content: bytes, name: str) -> list[Annotation]:
    """Return the labels painted on every image of a project.

    Raises
    ------
    InvalidProblemError
        If it is not a project of pixel classification, is damaged, or has volumes or films.
    """
    if not content.startswith(_HEAD):
        raise InvalidProblemError(f"{name} is no ilastik project, though it is named so.")
    try:
        import pyfive  # slow to import, and absent from the engine alone
    except ImportError as error:
        raise InvalidProblemError(
            f"{name} is an ilastik project, which needs pyfive: pip install "
            "'bethe-hall[outlines]', or export its labels as TIFF (Export Labels)."
        ) from error
    try:
        with pyfive.File(io.BytesIO(content)) as project:
            if "PixelClassification" not in project:
                raise InvalidProblemError(
                    f"{name} is an ilastik project without pixel classification; export its labels "
                    "as TIFF (Export Labels)."
                )
            return list(_lanes(project, name))
    except InvalidProblemError:
        raise
    except Exception as error:  # the reader raises errors of many kinds for a damaged file
        raise InvalidProblemError(f"{name}: this ilastik project is damaged.") from error


def _lanes(project: Any, name: str) -> Iterator[Annotation]:
    group = project["PixelClassification"]
    names = [_text(one) for one in _few(group["LabelNames"])]
    colours = _colours(group)
    labels = group["LabelSets"]
    for number, key in enumerate(sorted(labels)):
        blocks = labels[key]
        if not len(blocks):
            continue
        about = _raw_data(project, number)
        path = _text(about["filePath"][()]) if "filePath" in about else ""
        picture = PurePosixPath(path.replace("\\", "/")).name or _text(about["nickname"][()])
        annotation = Annotation(picture, None)
        for block in blocks:
            values, top, left = _block(blocks[block], about, f"{name}: {picture}")
            for value in np.unique(values[values > 0]).tolist():
                place = int(value) - 1
                kind = names[place] if place < len(names) else f"Class {value}"
                colour = colours[place] if place < len(colours) else ""
                annotation.shapes += filled(values == value, kind, colour, (top, left), int(value))
        if annotation.shapes:
            yield annotation


def _raw_data(project: Any, number: int) -> Any:
    """Return the project's record of an image."""
    return project[f"Input Data/infos/lane{number:04d}/Raw Data"]


def _block(dataset: Any, about: Any, name: str) -> tuple[NDArray[Any], int, int]:
    """Return the labels of a block, (rows, columns), and the position of its corner."""
    if int(np.prod(dataset.shape)) > MOST_AREA:
        raise InvalidProblemError(f"{name}: more is painted than a picture has pixels.")
    axes = _axes(dataset, about)
    starts = [int(first) for first, _ in _SLICE.findall(_text(dataset.attrs["blockSlice"]))]
    values = np.asarray(dataset[()])
    if values.ndim != len(axes) or len(starts) != len(axes):
        raise ValueError("axes do not fit")
    for axis in "tzc":
        if axis in axes:
            place = axes.index(axis)
            if values.shape[place] != 1:
                raise InvalidProblemError(
                    f"{name} is a volume or a film; export its labels as TIFF, a picture each."
                )
            values = np.take(values, 0, axis=place)
            axes, starts = axes.replace(axis, ""), starts[:place] + starts[place + 1 :]
    if axes == "xy":
        values, starts = values.T, starts[::-1]
    return values, starts[0], starts[1]


def _axes(dataset: Any, about: Any) -> str:
    """Return the axes of a block, from its own attributes or those of its image."""
    note = dataset.attrs.get("axistags")
    if note is None and "axistags" in about:
        note = about["axistags"][()]
    if note is None:
        return _USUAL_AXES[-len(dataset.shape) :]
    return "".join(str(one["key"]) for one in json.loads(_text(note))["axes"])


def _colours(group: Any) -> list[str]:
    try:
        rows = _few(group["LabelColors"]).reshape(-1, 3)
        return ["#{:02x}{:02x}{:02x}".format(*(int(side) for side in row)) for row in rows]
    except MISFITS:
        return []


def _few(dataset: Any) -> NDArray[Any]:
    """Return a short list of a project; a person's list of classes is never longer."""
    if int(np.prod(dataset.shape)) > MOST_NOTED:
        raise ValueError("a list of classes as long as a picture")
    return np.asarray(dataset[()]).ravel()


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.item()
    return value.decode() if isinstance(value, bytes) else str(value)
