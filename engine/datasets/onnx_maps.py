"""Probabilities of pixels by a network of another program, from an ONNX file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.core.options import check_choice
from engine.crf.class_features import MOST_CLASSES
from engine.crf.picture_windows import PictureSource, cut_tiles, tile_of
from engine.kernels.threads import count_threads

Planes = NDArray[np.float32]

INPUTS = ("unit", "byte", "imagenet")
"""Values of the pictures that a network takes: from 0 to 1, from 0 to 255, or from 0 to 1 less the
mean of ImageNet, divided by its standard deviation, channel by channel."""

SCORES = ("none", "softmax", "sigmoid")
"""Function that makes probabilities of what a network gives; "none" if it gives probabilities."""

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

MOST_BYTES = 1024**3
MULTIPLE = 32
"""Pictures are extended to multiples of this number of pixels: most networks halve five times."""

CORE, MARGIN = 768, 128
"""Side of the tiles that pass through a network one after the other, and pixels around each."""

ROUNDING = 1e-3
"""Tolerance by which a network's probabilities may exceed 0 and 1; they are cut off there."""

HOW_TO_GET = (
    'Maps from an ONNX file need onnxruntime, which is not installed: run pip install ".[onnx]".'
)


@dataclass(frozen=True, slots=True, eq=False)
class OnnxNetwork:
    """Network that gives maps of pictures; `open_onnx` checks its file and makes it.

    Parameters
    ----------
    name : str, of the file
    session : InferenceSession of onnxruntime
    channels : int, 1 for grey pictures or 3 for red, green and blue
    is_last : bool, whether channels are the last axis of input and output, not the second
    size : rows and columns of its pictures; None for any
    dtype : float32 or uint8 of its input
    values, scores : one of `INPUTS`, and one of `SCORES`
    """

    name: str
    session: Any
    channels: int
    is_last: bool
    size: tuple[int, int] | None
    dtype: Any
    values: str
    scores: str

    def maps(self, image: NDArray[np.uint8]) -> Planes:
        """Return the probabilities of a picture, (rows, columns, C), with its proportions.

        A network of any size goes over the picture in tiles. One of a fixed size gets the whole
        picture at that size, and its maps are as large as what it sees.

        Raises
        ------
        InvalidProblemError
            If the network cannot process the picture, or gives no probabilities.
        """
        height, width = image.shape[:2]
        if self.size is not None:
            rows, columns = self.size
            small = np.asarray(
                Image.fromarray(image).resize((columns, rows), Image.Resampling.BILINEAR)
            )
            share = min(max(self.size) / max(height, width), 1.0)
            shape = max(round(height * share), 1), max(round(width * share), 1)
            return _resized(self._run(small), shape)
        if max(height, width) <= CORE + 2 * MARGIN:
            return self._run(image)
        tiles = cut_tiles((height, width), CORE, MARGIN)
        first = self._run(image[tiles[0].place])
        found = np.empty((height, width, first.shape[2]), dtype=np.float32)
        for number, tile in enumerate(tiles):
            whole = self._run(image[tile.place]) if number else first
            place = (
                slice(tile.top, tile.top + tile.rows),
                slice(tile.left, tile.left + tile.columns),
            )
            found[place] = whole[tile.inside]
        return found

    def _run(self, image: NDArray[np.uint8]) -> Planes:
        """Return the probabilities of a picture that passes through the network at once."""
        rows, columns = image.shape[:2]
        extended = image
        if self.size is None:
            padding = ((0, -rows % MULTIPLE), (0, -columns % MULTIPLE), (0, 0))
            extended = np.pad(image, padding, mode="edge")
        values = self._values(extended)
        given = values[None] if self.is_last else np.moveaxis(values, 2, 0)[None]
        own = self.session.get_inputs()[0].name
        wanted = [self.session.get_outputs()[0].name]
        try:
            (out,) = self.session.run(wanted, {own: np.ascontiguousarray(given)})
        except Exception as error:  # onnxruntime has an exception of its own for every fault
            raise InvalidProblemError(
                f"{self.name}: the network cannot process a picture of {columns} x {rows} pixels: "
                f"{_first_line(error)}"
            ) from error
        return self._planes(np.asarray(out), values.shape[:2])[:rows, :columns]

    def _values(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        """Return a picture as the network takes it, (rows, columns, channels)."""
        if self.channels == 1:
            image = np.asarray(Image.fromarray(image).convert("L"))[:, :, None]
        if self.dtype == np.uint8:
            return image
        values = image.astype(np.float32)
        if self.values == "byte":
            return values
        values /= np.float32(255)
        if self.values == "imagenet":
            values -= np.array(IMAGENET_MEAN, np.float32)
            values /= np.array(IMAGENET_DEVIATION, np.float32)
        return values

    def _planes(self, out: NDArray[Any], shape: Sequence[int]) -> Planes:
        """Return the output as probabilities of ``shape`` and planes."""
        if out.ndim == 3:
            out = out[:, None] if not self.is_last else out[:, :, :, None]
        if out.ndim != 4 or out.shape[0] != 1 or out.dtype.kind != "f":
            raise InvalidProblemError(
                f"{self.name}: expected maps of one picture, numbers of shape "
                f"(1, planes, height, width), received {out.dtype} of shape {out.shape}."
            )
        planes = out[0] if self.is_last else np.moveaxis(out[0], 0, 2)
        if not 1 <= planes.shape[2] <= MOST_CLASSES:
            raise InvalidProblemError(
                f"{self.name}: at most {MOST_CLASSES} planes are taken, and the network gives "
                f"{planes.shape[2]}."
            )
        values = planes.astype(np.float32)
        low, high = float(values.min()), float(values.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise InvalidProblemError(f"{self.name}: the network gives values that are no numbers.")
        if self.scores == "none" and not (low >= -ROUNDING and high <= 1 + ROUNDING):
            raise InvalidProblemError(
                f"{self.name}: the network gives values from {low:.3g} to {high:.3g}, which are no "
                "probabilities. If they are scores, choose softmax (one label a pixel) or sigmoid "
                "(each plane by itself) with --maps-scores."
            )
        if self.scores == "softmax":
            values -= values.max(axis=2, keepdims=True)
            np.exp(values, out=values)
            values /= values.sum(axis=2, keepdims=True)
        elif self.scores == "sigmoid":
            values = 1 / (1 + np.exp(-np.clip(values, -80, 80)))
        return _resized(np.clip(values, 0, 1), (int(shape[0]), int(shape[1])))


@dataclass(slots=True, eq=False)
class OnnxMaps:
    """Maps of a picture of any size; rectangles of them are computed on demand.

    Parameters
    ----------
    network : OnnxNetwork of any size
    source : PictureSource
    n_planes : int
    """

    network: OnnxNetwork
    source: PictureSource
    n_planes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, those of the picture."""
        return self.source.shape

    def read(self, top: int, left: int, rows: int, columns: int) -> Planes:
        """Return the maps of a rectangle, seen with the pixels around it."""
        tile = tile_of((top, left, rows, columns), self.shape, MARGIN)
        return self.network.maps(self.source.read(*tile.window))[tile.inside]


def open_onnx_maps(network: OnnxNetwork, source: PictureSource) -> OnnxMaps:
    """Return the maps of a picture too large for memory.

    Raises
    ------
    InvalidProblemError
        If the network takes pictures of one size only, or cannot process this one.
    """
    if network.size is not None:
        rows, columns = network.size
        raise InvalidProblemError(
            f"{network.name}: the network takes pictures of {columns} x {rows} pixels only, so it "
            "cannot go over a picture in tiles. Export it with any height and width."
        )
    side = min(MULTIPLE, *source.shape)
    first = network.maps(source.read(0, 0, side, side))
    return OnnxMaps(network, source, int(first.shape[2]))


def open_onnx(path: Path | str, *, values: str = "unit", scores: str = "none") -> OnnxNetwork:
    """Open an ONNX file whose network gives maps of a picture.

    Its only input is a batch of pictures, (1, channels, height, width) or
    (1, height, width, channels), float32 or uint8, of 1 or 3 channels; height and width are any or
    fixed. Its first output are maps, (1, planes, height, width) or with the planes last as the
    channels of the input, of the picture's size or a part of it. Weights must lie in the file
    itself.

    Parameters
    ----------
    path : Path or str
    values : one of `INPUTS`
    scores : one of `SCORES`

    Raises
    ------
    InvalidProblemError
        If onnxruntime is not installed, the file cannot be read, or its network has other inputs
        or outputs.

    Examples
    --------
    >>> open_onnx("absent.onnx")
    Traceback (most recent call last):
        ...
    engine.core.errors.InvalidProblemError: absent.onnx: there is no such file.
    """
    check_choice("values", values, INPUTS)
    check_choice("scores", scores, SCORES)
    path = Path(path)
    if not path.is_file():
        raise InvalidProblemError(f"{path.name}: there is no such file.")
    try:
        import onnxruntime
    except ImportError as error:
        raise InvalidProblemError(HOW_TO_GET) from error
    if path.stat().st_size > MOST_BYTES:
        raise InvalidProblemError(f"{path.name}: an ONNX file has at most 1 GB.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count_threads()
    options.log_severity_level = 4
    try:  # from bytes, so that the file cannot name other files
        session = onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime has an exception of its own for every fault
        raise InvalidProblemError(
            f"{path.name} is no ONNX file that can be read: {_first_line(error)}"
        ) from error
    return _checked(path.name, session, values, scores)


def _checked(name: str, session: Any, values: str, scores: str) -> OnnxNetwork:
    """Return the network of a session, after checking its input and output."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InvalidProblemError(
            f"{name}: expected a network with one input, a picture; it has {len(inputs)}."
        )
    own = inputs[0]
    types = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8}
    shape = list(own.shape)
    is_batch = len(shape) == 4 and (shape[0] == 1 or not _is_fixed(shape[0]))
    if own.type not in types or not is_batch:
        raise InvalidProblemError(
            f"{name}: expected pictures of float32 or uint8 of shape (1, channels, height, width), "
            f"and the network takes {own.type} of shape {_said(shape)}."
        )
    is_last = shape[1] not in (1, 3) and shape[3] in (1, 3)
    channels = shape[3] if is_last else shape[1]
    if channels not in (1, 3):
        raise InvalidProblemError(
            f"{name}: expected pictures of 1 or 3 channels, and the network takes shape "
            f"{_said(shape)}."
        )
    if channels == 1 and values == "imagenet":
        raise InvalidProblemError(f"{name}: the mean of ImageNet is that of 3 channels, not of 1.")
    sides = shape[1:3] if is_last else shape[2:]
    fixed = [_is_fixed(side) for side in sides]
    if any(fixed) and not all(fixed):
        raise InvalidProblemError(
            f"{name}: height and width are both fixed or both any, not {_said(sides)}."
        )
    size = (int(sides[0]), int(sides[1])) if all(fixed) else None
    return OnnxNetwork(name, session, channels, is_last, size, types[own.type], values, scores)


def _is_fixed(side: Any) -> bool:
    """Return True for a number, False for a name or nothing: any size."""
    return isinstance(side, int)


def _said(shape: Sequence[Any]) -> str:
    """Return a shape in words: "(1, 3, any, any)"."""
    return f"({', '.join(str(side) if _is_fixed(side) else 'any' for side in shape)})"


def _first_line(error: Exception) -> str:
    """Return the first line of an error of onnxruntime, at most 200 characters."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _resized(planes: Planes, shape: tuple[int, int]) -> Planes:
    """Return maps at another size, interpolated plane by plane."""
    if planes.shape[:2] == shape:
        return planes
    rows, columns = shape
    found = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(planes[:, :, k])).resize(
                (columns, rows), Image.Resampling.BILINEAR
            )
        )
        for k in range(planes.shape[2])
    ]
    resized: Planes = np.clip(np.stack(found, axis=2), 0, 1)
    return resized
