"""Model that segments pictures into 2 to 32 labels, and its file format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts, write_npz
from engine.core.options import check_choice, check_number, check_positive, check_whole
from engine.crf.class_features import MOST_CLASSES, ClassFeatures, ClassLayout
from engine.crf.filter_bank import SCALES, Frame
from engine.crf.grid_features import GridFeatures
from engine.crf.image_features import (
    COLOUR_THRESHOLDS,
    N_EDGE_FEATURES,
    N_NODE_FEATURES,
    SOBEL_THRESHOLDS,
    compute_image_features,
)
from engine.crf.image_grid import MIN_SIDE, model_shape
from engine.datasets.label_maps import LabelCode, check_names
from engine.datasets.picture_view import PictureView
from engine.learning.segmentation.defaults import MAX_SIDE, RHO
from engine.learning.segmentation.model_parts import (
    check_model_parts,
    view_from_parts,
    view_parts,
    whole_number,
    whole_numbers,
)
from engine.learning.segmentation.network.inference import PARTS as NETWORK_PARTS
from engine.learning.segmentation.network.inference import Network, network_from_arrays
from engine.learning.segmentation.tree_features import n_parameters, tree_features
from engine.learning.segmentation.tree_unaries import PARTS as TREE_PARTS
from engine.learning.segmentation.tree_unaries import TreeUnaries, unaries_from_arrays
from engine.objectives.grid_inner import check_rho

FORMAT = "bethe-hall segmentation model 2"
LOSSES = ("likelihood", "univariate", "clique", "trees", "network", "mean")
"""Losses that models are learned by. "trees" and "network" are these alone, and "mean" is the mean
of their scores, all without edges."""

CLASS_LOSSES = ("likelihood", "univariate", "trees", "network", "mean")
"""Losses that models of label maps are learned by."""

MASK_NAMES = ("background", "foreground")
MAX_FILE_BYTES = 512 * 2**20
N_PARAMETERS = 2 * N_NODE_FEATURES + 4 * N_EDGE_FEATURES
"""Number of linear weights without maps; each map adds two weights."""

_NUMBERS = ("theta", "ridge", "rho", "max_side", "scale")
_SETTINGS = {
    "scales": np.array(SCALES),
    "colour_thresholds": COLOUR_THRESHOLDS,
    "sobel_thresholds": SOBEL_THRESHOLDS,
}
_CODE = ("classes", "values", "unknown")
_PARTS = (
    *("format", "unaries", "loss", "view", "position"),
    *_NUMBERS,
    *_SETTINGS,
    *_CODE,
    *TREE_PARTS,
    *NETWORK_PARTS,
)
_FORMER_PARTS: Mapping[str, Mapping[str, NDArray[Any]]] = {
    "bethe-hall segmentation model 1": {
        "unaries": np.array("linear"),
        "loss": np.array("likelihood"),
        "scale": np.array(0.0),
        "scales": _SETTINGS["scales"],
    },
    "bethe-hall boosted segmentation model 1": {
        "unaries": np.array("trees"),
        "scale": np.array(0.0),
    },
    "bethe-hall class segmentation model 1": {"unaries": np.array("trees"), "rho": np.array(RHO)},
}
"""Parts that files of earlier formats lack."""


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
class SegmentationModel:
    """Model of 2 to 32 labels: unaries, weights of their scores and of edges, and settings.

    Parameters
    ----------
    theta : ndarray, shape (K,), nats, read-only; see `engine.crf.grid_features` for masks and
        `engine.crf.class_features` for label maps.
    unaries : TreeUnaries, or None for linear weights of the published features of images.
    code : LabelCode, names of the labels and their values in files; None for masks.
    loss : loss used in learning, one of `LOSSES`.
    ridge : float, lambda used in learning.
    rho : float, edge appearance probability in (0, 1/2].
    detail : Detail
    n_maps : int, C, number of planes of given maps that every picture needs.
    view : PictureView, how the deep pictures are shown that it learned from; None without any.
    network : Network whose maps follow the given ones; None without any.
    """

    theta: FloatArray
    unaries: TreeUnaries | None
    code: LabelCode | None
    loss: str
    ridge: float
    rho: float
    detail: Detail
    n_maps: int
    view: PictureView | None = None
    network: Network | None = None

    @property
    def is_mask(self) -> bool:
        """True if it learned from masks: labels are background and foreground."""
        return self.code is None

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the labels; label 0 is the first."""
        return MASK_NAMES if self.code is None else self.code.names

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return len(self.classes)

    @property
    def values(self) -> tuple[int, ...]:
        """Value of each label in files."""
        return (0, 255) if self.code is None else self.code.values

    @property
    def unknown(self) -> tuple[int, ...]:
        """Values in given label maps that mean "unknown"."""
        return () if self.code is None else self.code.unknown

    @property
    def max_side(self) -> int:
        """Longest side in pixels; larger pictures are scaled down to it."""
        return self.detail.max_side

    @property
    def knows_place(self) -> bool:
        """True if the unaries of a pixel depend on the whole picture, not on its surroundings."""
        if self.unaries is None:
            return True
        return self.unaries.n_outputs == 1 and not self.unaries.is_local

    def grid_shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the model of a picture."""
        return self.detail.shape(height, width)

    def features(
        self,
        colours: NDArray[np.uint8],
        maps: NDArray[np.float32] | None = None,
        frame: Frame | None = None,
    ) -> GridFeatures | ClassFeatures:
        """Return the features of a picture at the size of its model, or of a window of it.

        ``maps`` are log-odds, (rows, columns, C) float32.
        """
        if maps is None:
            maps = np.zeros((*colours.shape[:2], 0), dtype=np.float32)
        if self.unaries is None:
            return compute_image_features(colours, maps)
        maps = self.with_network(colours, maps)
        if self.loss == "network":  # the trees have no weight
            scores = np.zeros((*colours.shape[:2], self.unaries.n_outputs), dtype=np.float32)
        else:
            scores = self.unaries.scores(colours, maps, frame=frame)
        return tree_features(colours, scores, maps)

    def with_network(
        self, colours: NDArray[np.uint8], maps: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the given maps of a picture, and those of the network behind them."""
        if self.network is None:
            return maps
        return np.concatenate([maps, self.network.log_odds(colours)], axis=2)

    def save(self, path: Path | str) -> None:
        """Write the model atomically, as an ``.npz`` of numbers and text without code."""
        arrays: dict[str, NDArray[Any]] = {
            "format": np.array(FORMAT),
            "unaries": np.array("linear" if self.unaries is None else "trees"),
            "loss": np.array(self.loss),
            "theta": self.theta,
            "ridge": np.array(self.ridge),
            "rho": np.array(self.rho),
            "max_side": np.array(self.detail.max_side),
            "scale": np.array(self.detail.scale),
            **_SETTINGS,
            **({"n_maps": np.array(self.n_maps)} if self.n_maps else {}),
            **({} if self.code is None else _code_parts(self.code)),
            **({} if self.unaries is None else self.unaries.arrays()),
            **({} if self.network is None else self.network.arrays()),
            **view_parts(self.view),
        }
        write_npz(path, arrays)


def make_segmentation_model(
    theta: FloatArray,
    *,
    unaries: TreeUnaries | None = None,
    code: LabelCode | None = None,
    loss: str = "likelihood",
    ridge: float,
    rho: float = RHO,
    detail: Detail,
    n_maps: int = 0,
    view: PictureView | None = None,
    network: Network | None = None,
) -> SegmentationModel:
    """Build a model that owns a checked, read-only copy of theta.

    ``n_maps`` counts the maps of linear unaries; trees know theirs, those of the network included.

    Raises
    ------
    InvalidProblemError
        If the parts do not fit each other or a number is out of range.
    """
    n_planes = n_maps if unaries is None else unaries.n_maps
    n_given = n_planes - (0 if network is None else _n_planes(network, unaries, code))
    if not 0 <= n_given <= MOST_CLASSES:
        raise InvalidProblemError(f"maps: expected at most {MOST_CLASSES} planes.")
    size = _n_weights(unaries, code, n_planes)
    values = as_finite_array("theta", np.array(theta, dtype=np.float64), shape=(size,))
    check_choice("loss", loss, LOSSES if code is None else CLASS_LOSSES)
    if loss in ("network", "mean") and network is None:
        raise InvalidProblemError(f"loss: {loss} needs a network.")
    strength, probability = check_positive("ridge", ridge), check_rho(rho)
    return SegmentationModel(
        read_only(values),
        unaries,
        code,
        loss,
        strength,
        probability,
        detail,
        n_given,
        view,
        network,
    )


def label_code(
    names: Sequence[str], values: Sequence[int] | None = None, unknown: Sequence[int] = ()
) -> LabelCode:
    """Return the code of a model's labels, with the values 0, 1, ... by default.

    Raises
    ------
    InvalidProblemError
        If there are not 2 to 32 different names, or two labels share a value.
    """
    check_names(names)
    numbers = tuple(range(len(names))) if values is None else tuple(int(v) for v in values)
    if len(numbers) != len(names) or len(set(numbers)) < len(numbers):
        raise InvalidProblemError("values: each class needs one of its own.")
    return LabelCode(tuple(names), numbers, tuple(int(v) for v in unknown))


def load_segmentation_model(path: Path | str) -> SegmentationModel:
    """Read a model of masks or label maps, of this or an earlier format, and check every part.

    Parameters
    ----------
    path : Path or str, a file that ``save`` of a model wrote.

    Returns
    -------
    SegmentationModel

    Raises
    ------
    InvalidProblemError
        If the file is absent, too large, of another kind or version, learned with other features,
        or holds parts that do not fit each other.

    Examples
    --------
    >>> load_segmentation_model("absent.npz")
    Traceback (most recent call last):
        ...
    engine.core.errors.InvalidProblemError: absent.npz: there is no such file.
    """
    name = Path(path).name
    parts = read_model_parts(path, _PARTS, max_bytes=MAX_FILE_BYTES)
    kind = str(parts.get("format"))
    if kind != FORMAT and kind not in _FORMER_PARTS:
        raise InvalidProblemError(f"{name} is not a segmentation model of this version.")
    return _assemble({**_FORMER_PARTS.get(kind, {}), **parts}, name)


load_class_model = load_segmentation_model
"""Name of `load_segmentation_model` in version 0.1 for files of label maps."""


def _n_weights(unaries: TreeUnaries | None, code: LabelCode | None, n_maps: int) -> int:
    """Return the length of theta, after checking that the trees fit the labels."""
    if unaries is None:
        if code is not None:
            raise InvalidProblemError("unaries: label maps need trees.")
        return N_PARAMETERS + 2 * n_maps
    unaries.check(1 if code is None else len(code.names))
    return n_parameters(n_maps) if code is None else ClassLayout(len(code.names), n_maps).size


def _n_planes(network: Network, unaries: TreeUnaries | None, code: LabelCode | None) -> int:
    """Return the number of maps of a network, after checking that it fits trees and labels."""
    n_labels = 2 if code is None else len(code.names)
    if unaries is None or network.shape.n_labels != n_labels:
        raise InvalidProblemError("network: it is of other labels, or without trees.")
    return network.n_planes


def _code_parts(code: LabelCode) -> dict[str, NDArray[Any]]:
    return {
        "classes": np.array(code.names),
        "values": np.array(code.values, dtype=np.int64),
        "unknown": np.array(code.unknown, dtype=np.int64),
    }


def _assemble(parts: Mapping[str, NDArray[Any]], name: str) -> SegmentationModel:
    """Build a model from the parts of a file, after checking them."""
    is_linear = str(parts.get("unaries")) == "linear"
    wanted = {"unaries", "loss", *_NUMBERS, *_SETTINGS} | (set() if is_linear else {"position"})
    wanted |= set(_CODE) if set(_CODE) & set(parts) else set()
    numbers = _NUMBERS if is_linear else (*_NUMBERS, "position")
    check_model_parts(parts, name, wanted=wanted, settings=_SETTINGS, numbers=numbers)
    try:
        n_maps = whole_number(parts, "n_maps")
        if is_linear and parts["theta"].shape != (N_PARAMETERS + 2 * n_maps,):
            raise InvalidProblemError(f"{name} was learned with other image features.")
        return make_segmentation_model(
            parts["theta"],
            unaries=None if is_linear else unaries_from_arrays(parts),
            code=_read_code(parts) if "classes" in parts else None,
            loss=str(parts["loss"]),
            ridge=float(parts["ridge"]),
            rho=float(parts["rho"]),
            detail=Detail(int(parts["max_side"]), float(parts["scale"])),
            n_maps=n_maps,
            view=view_from_parts(parts),
            network=network_from_arrays(parts),
        )
    except InvalidProblemError as error:
        if str(error).startswith(name):
            raise
        raise InvalidProblemError(f"{name} is damaged: {error}") from error


def _read_code(parts: Mapping[str, NDArray[Any]]) -> LabelCode:
    names = parts["classes"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InvalidProblemError("the names of its classes cannot be read.")
    values, unknown = (whole_numbers(parts[part], part) for part in ("values", "unknown"))
    return label_code([str(each) for each in names], values, unknown)
