"""Class model, which segments pictures into several classes, and its file format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts, read_npz, write_npz
from engine.core.options import check_number, check_positive, check_whole
from engine.crf.class_features import MOST_CLASSES, ClassFeatures, ClassLayout
from engine.crf.filter_bank import SCALES, Frame
from engine.crf.image_features import COLOUR_THRESHOLDS, SOBEL_THRESHOLDS, code_edges
from engine.crf.image_grid import MIN_SIDE, model_shape
from engine.datasets.picture_view import PictureView
from engine.learning.segmentation.defaults import MAX_SIDE
from engine.learning.segmentation.model_parts import check_model_parts, view_parts
from engine.learning.segmentation.tree_unaries import TreeUnaries, unaries_from_arrays

FORMAT = "bethe-hall class segmentation model 1"
LOSSES = ("likelihood", "univariate", "trees")
MAX_FILE_BYTES = 512 * 2**20

_NUMBERS = ("theta", "ridge", "max_side", "scale", "position", "n_maps")
_SETTINGS = {
    "scales": np.array(SCALES),
    "colour_thresholds": COLOUR_THRESHOLDS,
    "sobel_thresholds": SOBEL_THRESHOLDS,
}


@dataclass(frozen=True, slots=True)
class Detail:
    """Size of models: the picture's size times ``scale``, or at most ``max_side`` pixels a side.

    ``scale`` suits pictures of one magnification (a microscope's); ``max_side`` gives all models
    the same size (photographs).

    Parameters
    ----------
    max_side : int, pixels of the longest side.
    scale : float, share of the picture's size, at most 1; with 0 ``max_side`` decides.

    Raises
    ------
    InvalidProblemError
        If a number is out of range.

    Examples
    --------
    >>> Detail(max_side=100).shape(400, 200), Detail(scale=0.5).shape(400, 200)
    ((100, 50), (200, 100))
    """

    max_side: int = MAX_SIDE
    scale: float = 0.0

    def __post_init__(self) -> None:
        check_whole("max_side", self.max_side, at_least=MIN_SIDE)
        check_number("scale", self.scale, at_least=0.0, at_most=1.0)

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the model of a picture."""
        if self.scale == 0.0:
            return model_shape((height, width), self.max_side)
        rows, columns = (max(round(side * self.scale), MIN_SIDE) for side in (height, width))
        return rows, columns


@dataclass(frozen=True, slots=True, eq=False)
class ClassSegmentationModel:
    """Class model: boosted trees, weights of their scores and of edges, and settings.

    Parameters
    ----------
    classes : names of the classes; label 0 is the first.
    unaries : TreeUnaries
    theta : ndarray, shape (K,), nats, read-only; see `engine.crf.class_features`.
    loss : loss used in learning, one of `LOSSES`.
    ridge : float, lambda used in learning.
    detail : Detail
    values : value of each class in the given label maps; 0 to L - 1 by default.
    unknown : values in the given label maps that mean "unknown".
    """

    classes: tuple[str, ...]
    unaries: TreeUnaries
    theta: FloatArray
    loss: str
    ridge: float
    detail: Detail
    values: tuple[int, ...]
    unknown: tuple[int, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_maps(self) -> int:
        """Number of planes of given maps that every picture needs."""
        return self.unaries.n_maps

    def grid_shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the model of a picture."""
        return self.detail.shape(height, width)

    def features(
        self, colours: NDArray[np.uint8], maps: NDArray[np.float32], frame: Frame | None = None
    ) -> ClassFeatures:
        """Return the features of a picture at the size of its model, or of a window of it."""
        return class_features(colours, self.unaries.scores(colours, maps, frame=frame), maps)

    def save(self, path: Path | str, view: PictureView | None = None) -> None:
        """Write the model atomically, as an ``.npz`` of numbers and text without code.

        ``view`` is the view of the deep pictures that it learned from.
        """
        arrays: dict[str, NDArray[Any]] = {
            "format": np.array(FORMAT),
            "classes": np.array(self.classes),
            "loss": np.array(self.loss),
            "theta": self.theta,
            "ridge": np.array(self.ridge),
            "max_side": np.array(self.detail.max_side),
            "scale": np.array(self.detail.scale),
            "values": np.array(self.values, dtype=np.int64),
            "unknown": np.array(self.unknown, dtype=np.int64),
            **_SETTINGS,
            **self.unaries.arrays(),
            **view_parts(view),
        }
        write_npz(path, arrays)


def class_features(
    colours: NDArray[np.uint8], scores: NDArray[np.float32], maps: NDArray[np.float32]
) -> ClassFeatures:
    """Return class features from tree scores and maps, (rows, columns, .) each, and the colours."""
    return ClassFeatures(scores, maps, code_edges(colours / 255.0))


def make_class_model(
    classes: tuple[str, ...],
    unaries: TreeUnaries,
    theta: FloatArray,
    *,
    loss: str,
    ridge: float,
    detail: Detail,
    values: Sequence[int] | None = None,
    unknown: Sequence[int] = (),
) -> ClassSegmentationModel:
    """Build a class model that owns a checked, read-only copy of theta.

    Raises
    ------
    InvalidProblemError
        If the parts do not fit each other or a number is out of range.
    """
    check_classes(classes)
    layout = ClassLayout(len(classes), unaries.n_maps)
    weights = as_finite_array("theta", np.array(theta, dtype=np.float64), shape=(layout.size,))
    if loss not in LOSSES:
        raise InvalidProblemError(f"loss: expected one of {', '.join(LOSSES)}, received {loss!r}.")
    if not 0 <= unaries.n_maps <= MOST_CLASSES:
        raise InvalidProblemError(f"maps: expected at most {MOST_CLASSES} planes.")
    unaries.check(len(classes))
    code = tuple(range(len(classes))) if values is None else tuple(int(v) for v in values)
    if len(code) != len(classes) or len(set(code)) < len(code):
        raise InvalidProblemError("values: each class needs one of its own.")
    return ClassSegmentationModel(
        classes,
        unaries,
        read_only(weights),
        loss,
        check_positive("ridge", ridge),
        detail,
        code,
        tuple(int(v) for v in unknown),
    )


def check_classes(classes: tuple[str, ...]) -> None:
    """Raise InvalidProblemError unless there are 2 to 32 different names."""
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise InvalidProblemError(
            f"classes: expected 2 to {MOST_CLASSES} of them, received {len(classes)}."
        )
    if len(set(classes)) < len(classes) or not all(name.strip() for name in classes):
        raise InvalidProblemError("classes: each needs a name of its own.")


def load_class_model(path: Path | str) -> ClassSegmentationModel:
    """Read a class model file and check everything in it.

    Parameters
    ----------
    path : Path or str, a file that ``save`` of a model wrote.

    Returns
    -------
    ClassSegmentationModel

    Raises
    ------
    InvalidProblemError
        If the file is absent, too large, of another kind or version, learned with other features,
        or holds parts that do not fit each other.

    Examples
    --------
    >>> load_class_model("absent.npz")
    Traceback (most recent call last):
        ...
    engine.core.errors.InvalidProblemError: absent.npz: there is no such file.
    """
    name = Path(path).name
    parts = read_model_parts(path, None, max_bytes=MAX_FILE_BYTES)
    return assemble_class_model(parts, name)


def assemble_class_model(parts: Mapping[str, NDArray[Any]], name: str) -> ClassSegmentationModel:
    """Build a class model from the parts of a file, after checking them.

    Raises
    ------
    InvalidProblemError
        If a part is missing, learned with other features, or does not fit the others.
    """
    if str(parts.get("format")) != FORMAT:
        raise InvalidProblemError(f"{name} is not a segmentation model of this version.")
    wanted = {*_NUMBERS, *_SETTINGS, "classes", "loss", "values", "unknown"}
    check_model_parts(parts, name, wanted=wanted, settings=_SETTINGS, numbers=_NUMBERS)
    if parts["classes"].ndim != 1 or parts["classes"].dtype.kind != "U":
        raise InvalidProblemError(f"{name} is damaged: the names of its classes cannot be read.")
    try:
        return make_class_model(
            tuple(str(each) for each in parts["classes"]),
            unaries_from_arrays(parts),
            parts["theta"],
            loss=str(parts["loss"]),
            ridge=float(parts["ridge"]),
            detail=Detail(int(parts["max_side"]), float(parts["scale"])),
            values=_whole_numbers(parts["values"], "values"),
            unknown=_whole_numbers(parts["unknown"], "unknown"),
        )
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{name} is damaged: {error}") from error


def _whole_numbers(numbers: NDArray[Any], name: str) -> tuple[int, ...]:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidProblemError(f"{name}: expected whole numbers.")
    return tuple(int(number) for number in numbers)


def is_class_model(path: Path | str) -> bool:
    """Return True if a file has the format of a class model; False for all other files."""
    try:
        return str(read_npz(path, {"format"}).get("format")) == FORMAT
    except (OSError, InvalidProblemError):
        return False
