"""Reader of ImageJ's regions of interest, one per big-endian file, after ImageJ's RoiDecoder."""

import struct

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import Annotation, Shape, box, dots, ellipse, enclosed

HEAD = b"Iout"
_BEGIN = 64  # byte offset of the points
_SUB_PIXEL, _SUB_PIXEL_VERSION = 128, 222
_RECTANGLE, _OVAL, _LINE, _NOTHING, _POINT = 1, 2, 3, 6, 10
_AREAS = {0, 7, 8}  # polygon, freehand, traced
_PATHS = {4, 5, 9}  # freehand line, polyline, angle
_UNREAD = {1: "text", 4: "an image"}  # by subtype
_GROUP = 48  # byte offset in the second header
_MOST_POINTS = 29_000


def read_roi(content: bytes, name: str, image: str) -> Annotation:
    """Return a region on an image; its class is its group, or "Object" without a group.

    Raises
    ------
    InvalidProblemError
        If the region is damaged, or is not an area, a line or points.
    """
    if not content.startswith(HEAD):
        raise InvalidProblemError(f"{name} is no ImageJ ROI, though it is named so.")
    try:
        shapes = _shapes(content, name)
    except InvalidProblemError:
        raise
    except struct.error as error:
        raise InvalidProblemError(f"{name} is cut off.") from error
    except ValueError as error:
        raise InvalidProblemError(f"{name} is damaged: a point is nowhere.") from error
    return Annotation(image, None, shapes)


def _shapes(content: bytes, name: str) -> list[Shape]:
    version, kind = struct.unpack(">hB", content[4:7])
    if struct.unpack(">i", content[36:40])[0] > 0:
        raise InvalidProblemError(
            f"{name} is several areas in one ROI; split it in ImageJ (More, Split) and save again."
        )
    subtype, options = struct.unpack(">hh", content[48:52])
    if subtype in _UNREAD or kind == _NOTHING:
        raise InvalidProblemError(f"{name} is {_UNREAD.get(subtype, 'nothing')}, which is no area.")
    label = _label(content)
    if kind in (_RECTANGLE, _OVAL):
        return enclosed(_box(content, options, is_oval=kind == _OVAL), label)
    width = max(1.0, float(struct.unpack(">h", content[34:36])[0]))
    if kind == _LINE:
        return [Shape(label, "brush", list(struct.unpack(">4f", content[18:34])), width / 2)]
    points = _points(content, name, is_exact=bool(options & _SUB_PIXEL), version=version)
    if kind in _AREAS:
        return enclosed(points, label)
    if kind == _POINT:
        return dots(points, label)
    if kind in _PATHS:
        return [Shape(label, "brush", points, width / 2)]
    raise InvalidProblemError(f"{name} is an ROI of the kind {kind}, which is not read here.")


def _label(content: bytes) -> str:
    (second,) = struct.unpack(">i", content[60:64])
    if not 0 < second <= len(content) - _GROUP - 1:
        return "Object"
    group = content[second + _GROUP]
    return f"Group {group}" if group else "Object"


def _box(content: bytes, options: int, *, is_oval: bool) -> list[float]:
    top, left, bottom, right = (float(side) for side in struct.unpack(">4h", content[8:16]))
    if options & _SUB_PIXEL:
        x, y, wide, high = struct.unpack(">4f", content[18:34])
        if wide > 0 and high > 0:
            left, top, right, bottom = x, y, x + wide, y + high
    if not is_oval:
        return box(left, top, right, bottom)
    return ellipse((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)


def _points(content: bytes, name: str, *, is_exact: bool, version: int) -> list[float]:
    (count,) = struct.unpack(">H", content[16:18])
    if count == 0:
        (count,) = struct.unpack(">i", content[18:22])
    if not 1 <= count <= _MOST_POINTS:
        raise InvalidProblemError(f"{name} has {count:,} points; 1 to {_MOST_POINTS:,} are taken.")
    top, left = struct.unpack(">2h", content[8:12])
    if is_exact and version >= _SUB_PIXEL_VERSION:
        place = _BEGIN + 4 * count
        both = struct.unpack(f">{2 * count}f", content[place : place + 8 * count])
        xs, ys = list(both[:count]), list(both[count:])
    else:
        both = struct.unpack(f">{2 * count}h", content[_BEGIN : _BEGIN + 4 * count])
        xs, ys = [x + left for x in both[:count]], [y + top for y in both[count:]]
    return [float(number) for pair in zip(xs, ys, strict=True) for number in pair]
