"""Files of microscopes' own programs (CZI, LIF, ND2): one picture as OME-TIFF, or refused by name.

The readers are public packages that are imported only for such a file. A file with several pictures
or positions is refused, because it does not state which one is meant.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.calibration import PixelSize
from engine.datasets.limits import check_planes

CZI_HEAD, ND2_HEAD = b"ZISRAWFILE", b"\xda\xce\xbe\x0a"
_LIF_HEAD, _LIF_MARK, _LIF_MARK_PLACE = b"\x70\x00\x00\x00", 0x2A, 8
_METRE = 1e6  # micrometres
_ORDER = "TZCYXS"
_EXPORT = "open it in Fiji (Bio-Formats) and save what you need as OME-TIFF"
_CZI_SIDE = re.compile(r'<Distance\s+Id="([XY])"[^>]*>.*?<Value>([^<]+)</Value>', re.DOTALL)

Reader = Callable[[bytes, str, int], bytes]


def microscope_reader(content: bytes) -> Reader | None:
    """Return the reader for a microscope's own kind of file; None for all other files."""
    if content.startswith(CZI_HEAD):
        return _read_czi
    if content.startswith(ND2_HEAD):
        return _read_nd2
    is_lif = content.startswith(_LIF_HEAD) and content[_LIF_MARK_PLACE : _LIF_MARK_PLACE + 1]
    return _read_lif if is_lif and content[_LIF_MARK_PLACE] == _LIF_MARK else None


def _without_reader(label: str, kind: str, package: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"{label}: {kind} files are read only where the package {package} is installed; {_EXPORT}."
    )


def _damaged(label: str, kind: str) -> InvalidProblemError:
    return InvalidProblemError(f"{label}: this {kind} file is damaged or cut off; {_EXPORT}.")


def _several(label: str, count: int, noun: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"{label}: holds {count} {noun}, but a file can have only one; {_EXPORT}."
    )


def _checked_axes(sizes: Mapping[str, int], label: str, dtype: Any, max_pixels: int) -> None:
    """Refuse several positions, and sizes that are too large, before anything is unpacked."""
    for axis, size in sizes.items():
        if axis not in _ORDER and size > 1:
            raise _several(label, size, f"positions or views (axis {axis})")
    check_planes({k: v for k, v in sizes.items() if k in _ORDER}, dtype, label, max_pixels)


def _as_ome(numbers: NDArray[Any], axes: str, size: PixelSize | None, label: str) -> bytes:
    """Return the numbers as OME-TIFF, which states axes and the size of a pixel."""
    from tifffile import imwrite  # slow to import

    if numbers.dtype.kind not in "uif":
        raise InvalidProblemError(f"{label}: its values are {numbers.dtype}, not real numbers.")
    colours = dict(zip(axes, numbers.shape, strict=True)).get("S", 1)
    known = _ORDER if colours > 1 else _ORDER.removesuffix("S")
    kept = [k for k, axis in enumerate(axes) if axis in known]
    alone = numbers.reshape([numbers.shape[k] for k in kept])
    order = sorted(range(len(kept)), key=lambda k: _ORDER.index(axes[kept[k]]))
    named = "".join(axes[kept[k]] for k in order)
    about: dict[str, Any] = {"axes": named}
    if size is not None:
        about |= {"PhysicalSizeX": size.x, "PhysicalSizeY": size.y}
    stream = io.BytesIO()
    imwrite(
        stream,
        np.ascontiguousarray(alone.transpose(order)),
        ome=True,
        photometric="rgb" if named.endswith("S") else "minisblack",
        metadata=about,
    )
    return stream.getvalue()


def _read_czi(content: bytes, label: str, max_pixels: int) -> bytes:
    try:
        from czifile import CziFile  # an extra; slow to import
    except ImportError as error:
        raise _without_reader(label, "Zeiss CZI", "czifile") from error
    try:
        with contextlib.redirect_stdout(io.StringIO()), CziFile(io.BytesIO(content)) as file:
            axes = file.axes.replace("S", "P").replace("0", "S")  # its scenes and samples
            sizes = dict(zip(axes, file.shape, strict=True))
            _checked_axes(sizes, label, file.dtype, max_pixels)
            return _as_ome(_czi_numbers(file), axes, _czi_size(file), label)
    except InvalidProblemError:
        raise
    except Exception as error:  # any error that a reader raises for a damaged file
        raise _damaged(label, "Zeiss CZI") from error


def _czi_numbers(file: Any) -> NDArray[Any]:
    """Return the pixels, block by block: a damaged block must not become a black area."""
    out = np.zeros(file.shape, dtype=file.dtype)
    for entry in file.filtered_subblock_directory:
        block = entry.data_segment().data(resize=True, order=0)
        starts = [own - first for own, first in zip(entry.start, file.start, strict=True)]
        place = tuple(
            slice(start, start + length) for start, length in zip(starts, block.shape, strict=True)
        )
        out[place] = block
    return out


def _czi_size(file: Any) -> PixelSize | None:
    about = (file.metadata() or "").strip("\0 \r\n\t")
    if file.header.metadata_position and not about.endswith("</ImageDocument>"):
        raise ValueError("metadata that are cut off")
    sides = {axis: float(value) * _METRE for axis, value in _CZI_SIDE.findall(about)}
    is_stated = sides.get("X", 0.0) > 0 and sides.get("Y", 0.0) > 0
    return PixelSize(sides["X"], sides["Y"]) if is_stated else None


def _read_lif(content: bytes, label: str, max_pixels: int) -> bytes:
    try:
        from liffile import LifFile  # an extra; slow to import
    except ImportError as error:
        raise _without_reader(label, "Leica LIF", "liffile") from error
    try:
        with LifFile(io.BytesIO(content)) as file:
            pictures = list(file.images)
            if len(pictures) != 1:
                raise _several(label, len(pictures), "pictures")
            picture = pictures[0]
            axes = "".join(picture.dims)
            sizes = dict(zip(axes, picture.shape, strict=True))
            _checked_axes(sizes, label, picture.dtype, max_pixels)
            numbers = np.asarray(picture.asarray())
            return _as_ome(numbers, axes, _lif_size(picture), label)
    except InvalidProblemError:
        raise
    except Exception as error:  # any error that a reader raises for a damaged file
        raise _damaged(label, "Leica LIF") from error


def _lif_size(picture: Any) -> PixelSize | None:
    """Return the step between pixels; LIF gives the positions of the first and last in metres."""
    sides = []
    for axis in "XY":
        places = picture.coords.get(axis, ())
        if len(places) < 2 or places[-1] <= places[0]:
            return None
        sides.append(float(places[-1] - places[0]) / (len(places) - 1) * _METRE)
    return PixelSize(*sides)


def _read_nd2(content: bytes, label: str, max_pixels: int) -> bytes:
    try:
        from nd2 import ND2File  # an extra; slow to import
    except ImportError as error:
        raise _without_reader(label, "Nikon ND2", "nd2") from error
    try:
        with tempfile.NamedTemporaryFile(suffix=".nd2") as stored:
            stored.write(content)
            stored.flush()
            with ND2File(stored.name) as file:
                axes = "".join(file.sizes)
                _checked_axes(file.sizes, label, file.dtype, max_pixels)
                return _as_ome(np.asarray(file.asarray()), axes, _nd2_size(file), label)
    except InvalidProblemError:
        raise
    except Exception as error:  # any error that a reader raises for a damaged file
        raise _damaged(label, "Nikon ND2") from error


def _nd2_size(file: Any) -> PixelSize | None:
    """Return the calibration of the first channel; without one the reader gives 1."""
    channels = getattr(file.metadata, "channels", None)
    volume = channels[0].volume if channels else None
    if volume is None or not all(volume.axesCalibrated[:2]):
        return None
    across, down = (float(side) for side in volume.axesCalibration[:2])
    return PixelSize(across, down) if across > 0 and down > 0 else None
