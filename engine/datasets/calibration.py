"""Size of a picture's pixels, from the notes in its file: OME, ImageJ, makers' tags, resolution.

Resolutions of printers and screens do not describe the scene: they are ignored, in every unit.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.datasets.damage import UNREADABLE

_UNITS = {
    **dict.fromkeys(("\u03bcm", "\\u00b5m", "um", "micron", "microns", "mkm"), 1.0),
    **dict.fromkeys(("micrometer", "micrometre", "micrometers", "micrometres"), 1.0),
    **dict.fromkeys(("nm", "nanometer", "nanometre", "nanometers", "nanometres"), 1e-3),
    **dict.fromkeys(("mm", "millimeter", "millimetre", "millimeters", "millimetres"), 1e3),
    **dict.fromkeys(("cm", "centimeter", "centimetre", "centimeters", "centimetres"), 1e4),
    **dict.fromkeys(("dm", "decimeter", "decimetre"), 1e5),
    **dict.fromkeys(("m", "meter", "metre", "meters", "metres"), 1e6),
    **dict.fromkeys(("\u00e5", "angstrom", "angstroms", "\u00e5ngstr\u00f6m"), 1e-4),
    **dict.fromkeys(("pm", "picometer", "picometre"), 1e-6),
    **dict.fromkeys(("in", "inch", "inches", '"'), 2.54e4),
}
"""Micrometres of each unit's name, in small letters and Unicode's form NFKC, where the sign of
the micrometre is the Greek letter."""

UNREADABLE_NOTES: tuple[type[Exception], ...] = (*UNREADABLE, AttributeError)
"""Errors raised by a microscope maker's notes that are damaged or incomplete."""

_CENTIMETRE, _INCH, _METRE = 1e4, 2.54e4, 1e6  # micrometres
_PRINTED_UNITS = (_CENTIMETRE, _INCH)

PRINT_RESOLUTIONS = (72, 75, 96, 100, 120, 144, 150, 180, 200, 220, 240, 300, 350, 360, 400, 600)
"""Dots per inch that cameras, screens, drawing programs and printers note in every file."""

_PRINT_TOLERANCE = 0.02
"""Relative deviation allowed from a usual resolution: some programs round it per centimetre."""

_FINEST, _COARSEST = 1e-6, 1e9
"""Limits of a pixel's size in micrometres; sizes outside are no lengths of a scene."""

_COARSEST_BY_TAGS = 1e3
"""Coarsest resolution in tags, micrometres; coarser ones are placeholders (1 pixel per inch)."""

_APERIO_SIZE = re.compile(r"\bMPP\s*=\s*([0-9.eE+-]+)")


@dataclass(frozen=True, slots=True)
class PixelSize:
    """Width and height of a pixel, micrometres."""

    x: float
    y: float

    @property
    def area(self) -> float:
        """Return the area of a pixel in square micrometres."""
        return self.x * self.y

    @property
    def is_square(self) -> bool:
        """Return True if width and height are the same to a thousandth."""
        return math.isclose(self.x, self.y, rel_tol=1e-3)

    def turned(self, *, sideways: bool) -> "PixelSize":
        """Return the size after a picture was turned, by a quarter turn if ``sideways`` is true."""
        return PixelSize(self.y, self.x) if sideways else self


def micrometres_of(unit: str) -> float | None:
    """Return the number of micrometres in a unit; None for units that are no lengths.

    Examples
    --------
    >>> micrometres_of("\\u03bcm"), micrometres_of("Microns"), micrometres_of("pixel")
    (1.0, 1.0, None)
    """
    return _UNITS.get(unicodedata.normalize("NFKC", unit).strip().casefold())


def size_of_resolution(across: float, down: float, unit: float) -> PixelSize | None:
    """Return the pixel size of a resolution in pixels per unit; None for a printer resolution.

    Parameters
    ----------
    across, down : float, pixels per unit; ``down`` may be 0 if only one is known
    unit : float, micrometres

    Examples
    --------
    >>> size_of_resolution(10_000, 5_000, 1e4)
    PixelSize(x=1.0, y=2.0)
    >>> size_of_resolution(28.35, 28.35, 1e4) is None
    True
    """
    if not (math.isfinite(across) and across > 0):
        return None
    down = down if math.isfinite(down) and down > 0 else across
    if unit in _PRINTED_UNITS and _is_of_printers(across * _INCH / unit):
        return None
    return _checked(unit / across, unit / down)


def _is_of_printers(dots: float) -> bool:
    return any(abs(dots - usual) <= _PRINT_TOLERANCE * usual for usual in PRINT_RESOLUTIONS)


def _checked(x: float, y: float) -> PixelSize | None:
    is_length = all(math.isfinite(side) and _FINEST <= side <= _COARSEST for side in (x, y))
    return PixelSize(float(x), float(y)) if is_length else None


def size_of_info(info: Mapping[Any, Any]) -> PixelSize | None:
    """Return the pixel size by the resolution that Pillow found in a PNG, JPEG or BMP."""
    try:
        across, down = (float(side) for side in info["dpi"])
    except UNREADABLE:
        return None
    return size_of_resolution(across, down, _INCH)


def size_of_tiff(file: Any, page: Any) -> PixelSize | None:
    """Return the pixel size that a TIFF states: by OME, ImageJ, its maker, or its resolution.

    Parameters
    ----------
    file : tifffile.TiffFile
    page : tifffile.TiffPage, the first of the picture
    """
    for source in (_of_ome, _of_maker, _of_imagej):
        try:
            is_stated, size = source(file, page)
        except UNREADABLE_NOTES:
            continue
        if is_stated:
            return size
    return _of_tags(page, None)


_Found = tuple[bool, PixelSize | None]
_NOTHING: _Found = (False, None)


def _of_ome(file: Any, page: Any) -> _Found:
    """Return the sides in OME-XML; a single side counts for both."""
    if not (file.is_ome and file.ome_metadata):
        return _NOTHING
    from tifffile import xml2dict

    image = xml2dict(file.ome_metadata)["OME"]["Image"]
    pixels = (image[0] if isinstance(image, list) else image)["Pixels"]
    sides = [_ome_side(pixels, axis) for axis in "XY"]
    x, y = sides[0] or sides[1], sides[1] or sides[0]
    size = _checked(x, y) if x and y else None
    return (True, size) if size else _NOTHING


def _ome_side(pixels: Mapping[str, Any], axis: str) -> float | None:
    if f"PhysicalSize{axis}" not in pixels:
        return None
    factor = micrometres_of(str(pixels.get(f"PhysicalSize{axis}Unit", "µm")))
    return float(pixels[f"PhysicalSize{axis}"]) * factor if factor else None


def _of_imagej(file: Any, page: Any) -> _Found:
    """Return the size by ImageJ's unit for the resolution; "pixel" means no calibration."""
    if not file.is_imagej:
        return _NOTHING
    unit = str((file.imagej_metadata or {}).get("unit", "")).strip()
    if not unit:
        return _NOTHING
    factor = micrometres_of(unit)
    return True, _of_tags(page, factor) if factor else None


def _of_maker(file: Any, page: Any) -> _Found:
    """Return the size in metres or micrometres from the tags of a microscope's maker."""
    sides: tuple[float, float] | None = None
    if file.is_lsm:
        about = file.lsm_metadata
        sides = (about["VoxelSizeX"] * _METRE, about["VoxelSizeY"] * _METRE)
    elif file.is_fei:
        about = file.fei_metadata["Scan"]
        sides = (about["PixelWidth"] * _METRE, about["PixelHeight"] * _METRE)
    elif file.is_sis:
        about = file.sis_metadata
        sides = (about["pixelsizex"] * _METRE, about["pixelsizey"] * _METRE)
    elif file.is_stk and file.stk_metadata.get("SpatialCalibration", 1):
        about = file.stk_metadata
        factor = micrometres_of(str(about.get("CalibrationUnits", "")))
        if factor:
            sides = (about["XCalibration"] * factor, about["YCalibration"] * factor)
    elif file.is_sem:
        _, number, unit = file.sem_metadata["ap_image_pixel_size"][:3]
        side = float(number) * (micrometres_of(str(unit)) or math.nan)
        sides = (side, side)
    elif found := _APERIO_SIZE.search(str(page.description)):
        sides = (float(found[1]), float(found[1]))
    size = _checked(*sides) if sides else None
    return (True, size) if size else _NOTHING


def _of_tags(page: Any, unit: float | None) -> PixelSize | None:
    """Return the size by TIFF's own tags, in a unit that was given elsewhere or by the tags."""
    is_stated = unit is not None
    try:
        sides = [_per_unit(page, name) for name in ("XResolution", "YResolution")]
        if unit is None:
            tag = page.tags.get("ResolutionUnit")
            unit = {2: _INCH, 3: _CENTIMETRE}.get(int(tag.value) if tag is not None else 2)
    except UNREADABLE:
        return None
    size = size_of_resolution(sides[0] or sides[1], sides[1], unit) if unit else None
    return size if size is None or is_stated or max(size.x, size.y) <= _COARSEST_BY_TAGS else None


def _per_unit(page: Any, name: str) -> float:
    tag = page.tags.get(name)
    if tag is None or not isinstance(tag.value, tuple) or not tag.value[1]:
        return 0.0
    return float(tag.value[0]) / float(tag.value[1])
