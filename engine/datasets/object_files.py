"""Files of numbered objects for other programs: label TIFF, ImageJ, QuPath, Cellpose, COCO."""

import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray
from engine.core.errors import InvalidProblemError

MAX_SHORT = 65_535
"""Largest number of objects in a label TIFF of 16 bits; more take 32 bits."""
ROI_VERSION, ROI_TRACED, ROI_HEADER_BYTES = 227, 8, 64
"""Version, type of an outline around pixels, and bytes before the coordinates of an ImageJ ROI."""
MAX_ROI_SIDE = 32_767
"""Largest coordinate of an ImageJ ROI, a signed whole number of 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectOutline:
    """Number of an object, its pixels within a window of the picture, and the window's corner."""

    number: int
    mask: BoolArray
    top: int
    left: int

    @property
    def place(self) -> NDArray[np.int64]:
        """Column and row of the window's corner, shape (2,)."""
        return np.array([self.left, self.top], dtype=np.int64)


def object_windows(numbers: NDArray[np.integer[Any]]) -> Iterator[ObjectOutline]:
    """Yield every object within the smallest window around it, in order of the numbers.

    Examples
    --------
    >>> (one,) = object_windows(np.array([[0, 2], [0, 2]]))
    >>> one.number, one.mask.shape, one.top, one.left
    (2, (2, 1), 0, 1)
    """
    from scipy.ndimage import find_objects

    for place, window in enumerate(find_objects(numbers), start=1):
        if window is not None:
            top, left = int(window[0].start), int(window[1].start)
            yield ObjectOutline(place, np.asarray(numbers[window] == place), top, left)


def outline_of(mask: BoolArray) -> NDArray[np.int64]:
    """Return the corners of the outer border of a mask, (n, 2): x and y between pixels, clockwise.

    Pixels joined by corners belong together; of a mask in parts it is the border of the part that
    comes first. Holes are left out.

    Examples
    --------
    >>> outline_of(np.ones((1, 2), dtype=bool)).tolist()
    [[0, 0], [2, 0], [2, 1], [0, 1]]
    """
    inside = np.pad(mask, 1)
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for down, right, start, step in (
        (-1, 0, (0, 0), (1, 0)),
        (0, 1, (1, 0), (0, 1)),
        (1, 0, (1, 1), (-1, 0)),
        (0, -1, (0, 1), (0, -1)),
    ):
        beside = inside[1 + down : 1 + down + mask.shape[0], 1 + right : 1 + right + mask.shape[1]]
        for y, x in np.argwhere(mask & ~beside).tolist():
            steps.setdefault((x + start[0], y + start[1]), []).append(step)
    row, column = np.argwhere(mask)[0].tolist()
    place, (dx, dy) = (column, row), (1, 0)
    corners = [place]
    while True:
        place = (place[0] + dx, place[1] + dy)
        if place == corners[0]:
            return np.array(corners, dtype=np.int64)
        left, found = (dy, -dx), steps[place]  # at a corner of two pixels both stay joined
        new = left if left in found else found[0]
        if new != (dx, dy):
            corners.append(place)
        dx, dy = new


def label_tiff(numbers: NDArray[np.integer[Any]]) -> bytes:
    """Return the numbers of objects as a TIFF: 16 bits, or 32 above 65,535 objects."""
    import tifffile

    dtype = np.uint16 if numbers.max(initial=0) <= MAX_SHORT else np.uint32
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, numbers.astype(dtype), compression="zlib")
    return buffer.getvalue()


def imagej_rois(numbers: NDArray[np.integer[Any]]) -> bytes:
    """Return the outlines of objects as an ImageJ ROI set: a ZIP of one ``NUMBER.roi`` each.

    Raises
    ------
    InvalidProblemError
        If a side of the picture exceeds what ImageJ's format holds.
    """
    if max(numbers.shape) > MAX_ROI_SIDE:
        raise InvalidProblemError(
            f"ImageJ ROIs hold coordinates up to {MAX_ROI_SIDE:,}. "
            "Export the labels as TIFF or GeoJSON instead."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in object_windows(numbers):
            # A fixed date, so that equal objects make equal files.
            name = zipfile.ZipInfo(f"{one.number:05d}.roi")
            name.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(name, _roi(one))
    return buffer.getvalue()


def _roi(one: ObjectOutline) -> bytes:
    """Return a traced ROI: a header of 64 bytes, then all x and all y from its corner."""
    points = outline_of(one.mask)
    corner, far = points.min(axis=0), points.max(axis=0)
    left, top = (corner + one.place).tolist()
    right, bottom = (far + one.place).tolist()
    head = struct.pack(
        ">4shBx4hH", b"Iout", ROI_VERSION, ROI_TRACED, top, left, bottom, right, len(points)
    )
    places: bytes = (points - corner).T.astype(">i2").tobytes()
    return head.ljust(ROI_HEADER_BYTES, b"\0") + places


def geojson(
    numbers: NDArray[np.integer[Any]], classes: Mapping[int, tuple[str, str]] | None = None
) -> bytes:
    """Return the outlines of objects as GeoJSON of QuPath's detections.

    Parameters
    ----------
    numbers : ndarray, shape (height, width); 0 is background.
    classes : name and colour (``#rrggbb``) of the class of each number, optional.
    """
    features = []
    for one in object_windows(numbers):
        ring = (outline_of(one.mask) + one.place).tolist()
        about: dict[str, Any] = {"objectType": "detection", "name": str(one.number)}
        if classes and one.number in classes:
            name, colour = classes[one.number]
            shade = list(bytes.fromhex(colour.removeprefix("#")))
            about["classification"] = {"name": name, "color": shade}
        shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        features.append({"type": "Feature", "geometry": shape, "properties": about})
    whole = {"type": "FeatureCollection", "features": features}
    return json.dumps(whole, separators=(",", ":")).encode()


def cellpose_seg(numbers: NDArray[np.integer[Any]], name: str) -> bytes:
    """Return Cellpose's ``NAME_seg.npy``: a dictionary with masks and outlines.

    The format is a pickle, which we write and never read.
    """
    from skimage.segmentation import find_boundaries

    count = int(numbers.max(initial=0))
    masks = numbers.astype(np.uint16 if count <= MAX_SHORT else np.uint32)
    is_outline = find_boundaries(masks, mode="inner")  # type: ignore[no-untyped-call]
    whole = {
        "masks": masks,
        "outlines": np.where(is_outline, masks, 0).astype(masks.dtype),
        "filename": name,
        "chan_choose": [0, 0],
        "ismanual": np.zeros(count, dtype=bool),
        "manual_changes": [],
        "flows": [],
    }
    buffer = io.BytesIO()
    np.save(buffer, np.array(whole, dtype=object), allow_pickle=True)
    return buffer.getvalue()


def coco_shape(one: ObjectOutline, shape: tuple[int, int]) -> dict[str, Any]:
    """Return column-wise run lengths, starting with unmarked pixels; box and area."""
    rows, columns = shape
    steps = np.diff(np.pad(one.mask, ((1, 1), (0, 0))).astype(np.int8), axis=0).T
    column, begins = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    first = (column + one.left) * rows + begins + one.top
    last = (column + one.left) * rows + ends + one.top
    is_new = np.append(True, first[1:] != last[:-1])  # a run goes on at the top of the next column
    first, last = first[is_new], last[np.append(is_new[1:], True)]
    borders = np.stack([first, last], axis=1).ravel()
    counts = np.diff(np.concatenate([[0], borders, [rows * columns]])).tolist()
    height, width = one.mask.shape
    return {
        "segmentation": {"counts": counts if counts[-1] else counts[:-1], "size": [rows, columns]},
        "bbox": [one.left, one.top, width, height],
        "area": int(one.mask.sum()),
        "iscrowd": 0,
    }
