"""TIFF files: their samples, the meaning of these, and their light."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.calibration import PixelSize, size_of_tiff
from engine.datasets.damage import UNREADABLE, unreadable_tiff
from engine.datasets.limits import check_planes
from engine.datasets.samples import Light, Meaning, light_of, upright
from engine.datasets.tiff_files import open_tiff

TIFF_HEADS = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")

MOST_CHANNELS_LAST, NARROWEST = 8, 4
"""Most entries of a last axis that counts channels, and the least ratio of both sides to it."""

_LIGHTS = {
    "MINISWHITE": Light.WHITE_IS_ZERO,
    "RGB": Light.COLOUR,
    "YCBCR": Light.COLOUR,  # its decoder converts to RGB
    "PALETTE": Light.PALETTE,
    "SEPARATED": Light.INKS,
    "CIELAB": Light.CIELAB,
}
_SAMPLES_OF = {Light.COLOUR: 3, Light.INKS: 4, Light.CIELAB: 3, Light.CIELAB_D65: 3}
_NOT_LIGHT = {"CFA": "the mosaic of a camera's raw file", "LOGL": "SGI's LogL", "LOGLUV": "LogLuv"}
_OPACITIES = (1, 2)  # of ExtraSamples: premultiplied, and not

_JPEG = frozenset({6, 7})
_JPEG_2000 = frozenset({33003, 33005, 34712})  # the first two of Aperio's slides
_FAX = frozenset({2, 3, 4})
_PACKED = (
    frozenset({0, 1, 5, 8, 32773, 32946, 34925, 50000, 50001, 34933}) | _JPEG | _JPEG_2000 | _FAX
)
"""Compressions that are read: none, LZW, ZIP, PackBits, LZMA, Zstandard, WebP, PNG, JPEG, fax."""

_OWN_UUID = re.compile(r"<OME\b[^>]*\bUUID=\"([^\"]*)\"")
_PLANE_FILES = re.compile(r"<UUID\b[^>]*\bFileName=\"([^\"]{1,200})\"[^>]*>([^<]*)<")
_BESIDE = {
    "label",
    "label image",
    "macro",
    "macro image",
    "overview",
    "overview image",
    "thumbnail",
}
"""Names of a slide's pictures that do not show the specimen itself."""

_LEAST_SHRINKAGE = 2
"""A picture of less than half the area is a level or a thumbnail of another one."""
_NO_DATA_TAG = 42113  # of GDAL
_WRITER = "tifffile"


@dataclass(frozen=True, slots=True, eq=False)
class TiffSamples:
    """Raw samples of a TIFF, not turned yet.

    Parameters
    ----------
    planes : ndarray, shape (n_pages, n_channels, height, width), any real type
    meaning : Meaning, of every page
    palettes : the palette of each page; none if samples are not indices
    pixel_size : PixelSize or None, before turning
    is_by_number : bool, True if its program means numbers even if it notes that 0 is white
    gap : float or None, the number that stands for "no data"
    """

    planes: NDArray[Any]
    meaning: Meaning
    palettes: tuple[NDArray[np.uint8], ...]
    pixel_size: PixelSize | None
    is_by_number: bool
    gap: float | None = None

    def numbers(self) -> NDArray[Any]:
        """Return the samples themselves, upright."""
        return np.ascontiguousarray(upright(self.planes, self.meaning.orientation))

    def light(self) -> NDArray[Any]:
        """Return grey, or red, green and blue, upright; gaps are not numbers."""
        meaning, planes = self.meaning, _filled(self.planes, self.meaning)
        if planes.dtype != self.planes.dtype or meaning.light is not Light.PALETTE:
            meaning = replace(meaning, most=max(meaning.most, _most(planes, meaning.most)))
        if len(self.palettes) > 1:
            pages = [
                light_of(planes[k], replace(meaning, palette=palette))
                for k, palette in enumerate(self.palettes)
            ]
            shown = np.stack(pages)
        else:
            palette = self.palettes[0] if self.palettes else None
            shown = light_of(planes, replace(meaning, palette=palette))
        return np.ascontiguousarray(upright(_with_gaps(shown, self.gap), meaning.orientation))

    @property
    def is_colour(self) -> bool:
        """Return True if its light is red, green and blue."""
        light, count = self.meaning.light, self.planes.shape[1]
        return light is Light.PALETTE or count >= _SAMPLES_OF.get(light, count + 1)

    @property
    def upright_size(self) -> PixelSize | None:
        """Return the size of a pixel after the picture is turned."""
        if self.pixel_size is None:
            return None
        return self.pixel_size.turned(sideways=self.meaning.is_sideways)


def is_tiff(content: bytes) -> bool:
    """Return True if bytes begin as TIFF or BigTIFF files do."""
    return content[:4] in TIFF_HEADS


def read_tiff_samples(content: bytes, label: str, max_pixels: int) -> TiffSamples | None:
    """Read the first picture of a TIFF; None if another decoder has to try.

    Raises
    ------
    InvalidProblemError
        If it is too large, holds complex or other numbers than real ones, lies in several files
        that are not all there, or is packed so that only its own program unpacks it.
    """
    try:
        with open_tiff(content, label) as file:
            series = _sole_series(file, label)
            page = series.keyframe
            if _is_left_to_others(page):
                return None
            if series.dtype.kind not in "buif":
                raise InvalidProblemError(
                    f"{label}: its values are {series.dtype}, not real numbers."
                )
            if int(page.compression) not in _PACKED:
                raise _unpacked_nowhere(page, label)
            if name := _NOT_LIGHT.get(getattr(page.photometric, "name", "")):
                raise InvalidProblemError(f"{label}: its values are {name}; save it as plain TIFF.")
            axes = meant_axes(series)
            check_planes(
                dict(zip(axes, series.shape, strict=True)), series.dtype, label, max_pixels
            )
            _check_whole(series, len(content), label)
            planes = _planes(series, axes, _numbers(series, label))
            return TiffSamples(
                planes,
                meaning_of_page(page, planes),
                _palettes(series, planes),
                size_of_tiff(file, page),
                _is_by_number(file, page),
                _gap(page),
            )
    except InvalidProblemError:
        raise
    except unreadable_tiff():
        return None  # the picture decoder explains the fault in its message


def meant_axes(series: Any) -> str:
    """Return the axes of a tifffile series.

    tifffile makes a page of each row of an array (height, width, few); here the last are channels.
    """
    if series.kind != "shaped" or series.axes != "QYX":
        return str(series.axes)
    *sides, last = series.shape
    is_channel = last <= MOST_CHANNELS_LAST and min(sides) >= NARROWEST * last
    return "YXC" if is_channel else "QYX"


def only_series(file: Any, label: str) -> Any:
    """Return the picture of a file: the largest one, beside its levels, thumbnails and labels.

    Raises
    ------
    InvalidProblemError
        If another picture is about as large, as of several scenes or positions: one of them would
        stand for all.
    """
    largest = max(file.series, key=lambda one: (not _is_reduced(one), _area(one)))
    rest = [one for one in file.series if one is not largest and not _is_reduced(one)]
    rivals = [one for one in rest if _area(one) * _LEAST_SHRINKAGE > _area(largest)]
    if rivals:
        raise InvalidProblemError(
            f"{label}: it holds {1 + len(rivals)} pictures; save each in a file of its own."
        )
    return largest


def _is_reduced(series: Any) -> bool:
    """Return True for a thumbnail, or a picture about the picture: a slide's label."""
    is_small = bool(int(series.keyframe.subfiletype or 0) & 1)
    return is_small or str(series.name).strip().casefold() in _BESIDE


def _area(series: Any) -> int:
    return int(series.keyframe.imagelength) * int(series.keyframe.imagewidth)


def _sole_series(file: Any, label: str) -> Any:
    """Return the only picture; refuse it if its planes are in other files that are missing."""
    series = only_series(file, label)
    missing = sum(page is None for page in series.pages)
    if not missing:
        return series
    elsewhere = _other_files(file)
    where = f" in {elsewhere[0]}" if elsewhere else " in no file"
    more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
    raise InvalidProblemError(
        f"{label}: {missing} of its {len(series.pages)} planes lie{'s'[: missing == 1]}{where}"
        f"{more}; save the picture as one OME-TIFF (Fiji: Plugins, Bio-Formats Exporter)."
    )


def _other_files(file: Any) -> list[str]:
    """Return the other files in which planes lie, by OME-XML."""
    about = str(file.ome_metadata or "")
    own = _OWN_UUID.search(about)
    named = _PLANE_FILES.findall(about)
    return sorted({name for name, uuid in named if own is None or uuid.strip() != own[1]})


def _is_left_to_others(page: Any) -> bool:
    """Return True if the samples are of a kind that tifffile returns half decoded."""
    light, packing = getattr(page.photometric, "name", ""), int(page.compression)
    return packing == 6 or (light == "YCBCR" and packing not in _JPEG | _JPEG_2000 | {50001})


def _unpacked_nowhere(page: Any, label: str) -> InvalidProblemError:
    kind = getattr(page.compression, "name", "its own way")
    return InvalidProblemError(
        f"{label}: packed by {kind}, which is not read here; save it without compression or "
        "packed by LZW or ZIP (deflate)."
    )


def _check_whole(series: Any, size: int, label: str) -> None:
    """Refuse a file that ends before its last strip or tile; tifffile would fill it with 0."""
    for page in series.pages:
        places = zip(page.dataoffsets, page.databytecounts, strict=False)
        if any(offset + count > size for offset, count in places if count):
            raise InvalidProblemError(
                f"{label}: the file is damaged or cut off before the picture ends."
            )


def _numbers(series: Any, label: str) -> NDArray[Any]:
    """Return all numbers of a series, in its own order of axes; a damaged page is named."""
    try:
        return np.asarray(series.asarray())
    except Exception as error:  # any error that a codec raises for damaged bytes
        damage = error
    for number, page in enumerate(series.pages, start=1):
        try:
            page.asarray()
        except Exception as error:
            if len(series.pages) == 1:
                break
            raise InvalidProblemError(
                f"{label}: page {number} of {len(series.pages)} is damaged."
            ) from error
    else:
        raise InvalidProblemError(f"{label}: its pages do not belong together.")
    raise InvalidProblemError(
        f"{label}: the file is damaged or cut off before the picture ends."
    ) from damage


def _planes(series: Any, axes: str, given: NDArray[Any]) -> NDArray[Any]:
    """Return all numbers, in the order pages, channels, rows, columns."""
    numbers = given.reshape(series.shape)
    pages = [k for k, axis in enumerate(axes) if axis not in "CSYX"]
    channels = [k for k, axis in enumerate(axes) if axis in "CS"]
    ordered = numbers.transpose(*pages, *channels, axes.index("Y"), axes.index("X"))
    height, width = ordered.shape[-2:]
    n_channels = int(np.prod([numbers.shape[k] for k in channels], dtype=int))
    return np.ascontiguousarray(ordered.reshape(-1, n_channels, height, width))


def meaning_of_page(page: Any, planes: NDArray[Any]) -> Meaning:
    """Return the meaning of a page's samples, if all channels are samples of one page."""
    light = _LIGHTS.get(getattr(page.photometric, "name", ""), Light.BLACK_IS_ZERO)
    if light is Light.CIELAB and (planes.dtype.kind == "f" or _is_of_script(page)):
        light = Light.CIELAB_D65  # scikit-image's white point; all other programs follow TIFF
    count = int(page.samplesperpixel)
    orientation = _orientation(page)
    most = _most_of_bits(page, planes)
    if planes.shape[1] != count or count < _SAMPLES_OF.get(light, 1):
        is_white = light is Light.WHITE_IS_ZERO
        plain = light if is_white else Light.BLACK_IS_ZERO
        return Meaning(plain, most, orientation=orientation)
    extra = [int(kind) for kind in page.extrasamples]
    place = next((k for k, kind in enumerate(extra) if kind in _OPACITIES), None)
    opacity = -1 if place is None else count - len(extra) + place
    is_premultiplied = place is not None and extra[place] == 1
    return Meaning(light, most, None, opacity, is_premultiplied, orientation)


def _orientation(page: Any) -> int:
    tag = page.tags.get("Orientation")
    try:
        number = int(tag.value) if tag is not None else 1
    except UNREADABLE:
        return 1
    return number if 1 <= number <= 8 else 1


def _most_of_bits(page: Any, planes: NDArray[Any]) -> float:
    """Return the sample of full light, by the bits of a sample in the file."""
    if planes.dtype.kind == "f":
        return 1.0
    bits = page.bitspersample
    bits = int(bits[0] if isinstance(bits, Sequence) else bits)
    if planes.dtype.kind == "b":
        bits = 1
    return float(2**bits - 1)


def _palettes(series: Any, planes: NDArray[Any]) -> tuple[NDArray[np.uint8], ...]:
    """Return the palette of each page; a single one if all are the same."""
    page = series.keyframe
    if getattr(page.photometric, "name", "") != "PALETTE" or planes.shape[1] < 1:
        return ()
    own = [bytes_of_palette(getattr(one, "colormap", None)) for one in series.pages]
    first = bytes_of_palette(page.colormap)
    if first is None:
        return ()
    found = [first if one is None else one for one in own]
    is_same = all(np.array_equal(one, first) for one in found) or len(found) != len(planes)
    return (first,) if is_same else tuple(found)


def bytes_of_palette(colours: Any) -> NDArray[np.uint8] | None:
    """Return a palette, shape (n, 3), from colours of sixteen bits or, wrongly, of eight."""
    if colours is None:
        return None
    values = np.asarray(colours).T
    if values.max(initial=0) > 255:
        values = values >> 8
    return np.ascontiguousarray(values.astype(np.uint8))


def _is_by_number(file: Any, page: Any) -> bool:
    """Return True if the file's program gives objects the larger number, however shown."""
    return bool(file.is_imagej or _is_of_script(page))


def _is_of_script(page: Any) -> bool:
    """Return True if a script wrote the file with tifffile."""
    return str(page.software).startswith(_WRITER)


def _gap(page: Any) -> float | None:
    """Return the number that GDAL notes for "no data"."""
    tag = page.tags.get(_NO_DATA_TAG)
    try:
        return float(str(tag.value).strip("\x00 ")) if tag is not None else None
    except UNREADABLE:
        return None


def _filled(planes: NDArray[Any], meaning: Meaning) -> NDArray[Any]:
    """Return samples of fewer than eight bits as bytes, so that full light is 255."""
    if meaning.light is Light.PALETTE:
        return planes.astype(np.uint8) if planes.dtype.kind == "b" else planes
    if planes.dtype.kind == "b":
        return np.where(planes, np.uint8(255), np.uint8(0))
    if planes.dtype == np.uint8 and meaning.most < 255:
        return np.asarray(planes.astype(np.uint16) * 255 // int(meaning.most)).astype(np.uint8)
    return planes


def _most(planes: NDArray[Any], most: float) -> float:
    return 255.0 if planes.dtype == np.uint8 else most


def _with_gaps(planes: NDArray[Any], gap: float | None) -> NDArray[Any]:
    """Return planes with NaN for "no data"; unchanged if there is none, or nothing else."""
    if gap is None:
        return planes
    gaps = planes == gap
    if not gaps.any() or gaps.all():
        return planes
    known = planes.astype(np.float32)
    known[gaps] = np.nan
    return known
