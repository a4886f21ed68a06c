"""Files that no picture decoder opens: converted to TIFF, or refused by the name of their kind."""

import io
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.damage import UNREADABLE
from engine.datasets.limits import MAX_CHANNELS, MAX_STACK_BYTES, check_pixels
from engine.datasets.microscope_files import microscope_reader

JPEG_2000_HEAD = b"\x00\x00\x00\x0cjP  \r\n\x87\n"
_CODESTREAM_HEAD = b"\xff\x4f\xff\x51"
_NUMPY_HEAD = b"\x93NUMPY"
_RAW_HEAD = b"P6"
_DEEPEST = 65535
_HEIC_ERRORS = (ValueError, RuntimeError, OSError, EOFError, SyntaxError, LookupError, TypeError)
_TARGA_HEAD = struct.Struct("<BBBHHBHHHHBB")

JPEG_2000, NUMPY, HEIC, MICROSCOPE = "JPEG2000", "NPY", "HEIC", "MICROSCOPE"
"""Kinds of `unsupported_kind` that are read, although other decoders do not open them."""


@dataclass(frozen=True, slots=True)
class _Unsupported:
    """A kind of unsupported file: its first bytes, its name, and the format to save instead."""

    starts: tuple[bytes, ...]
    what: str
    instead: str
    place: int = 0

    def __contains__(self, content: bytes) -> bool:
        return content[self.place :].startswith(self.starts)


_YOLO_LINE = re.compile(rb"\d+( -?[\d.e+-]+){4,}")
_EXPORT = "open it in Fiji (Bio-Formats) and save it as TIFF"
_FLAT = "export it as PNG or TIFF"
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"})
_STRANGERS = (
    _Unsupported(
        tuple(b"ftyp" + brand for brand in (*sorted(_HEIC_BRANDS), b"mif1", b"msf1")),
        "HEIC pictures are read only where the package pi-heif-decoder is installed",
        "save it as JPEG or PNG; iPhones write JPEG by Settings, Camera, Formats, Most Compatible",
        4,
    ),
    _Unsupported(
        (b"ftypcrx",), "this is a camera's raw file (CR3)", "develop it to TIFF or JPEG", 4
    ),
    _Unsupported((b"ftyp", b"moov"), "this is a video", "save its frames as PNG or TIFF", 4),
    _Unsupported((b"\x1a\x45\xdf\xa3",), "this is a video", "save its frames as PNG or TIFF"),
    _Unsupported((b"AVI ",), "this is a video", "save its frames as PNG or TIFF", 8),
    _Unsupported(
        (b"DICM",),
        "DICOM files, which hold data of patients, are not read here",
        "save its picture as TIFF or PNG, with 3D Slicer or Fiji, say",
        128,
    ),
    _Unsupported(
        (b"Iout",), "this is an ImageJ ROI", "name it after its picture, with the ending roi"
    ),
    _Unsupported((b"\x70\x00\x00\x00",), "this is a Leica LIF file", _EXPORT),
    _Unsupported((b"\xa0\x01\x00\x80", b"\x24\x01\x00\x00"), "this is a DeltaVision file", _EXPORT),
    _Unsupported(
        (b"\xd0\xcf\x11\xe0",),
        "this is an Olympus OIB, Zeiss ZVI or an older Office file",
        f"if it is a picture, {_EXPORT}",
    ),
    _Unsupported(
        (b"\x89HDF",),
        "this is an HDF5 file (ilastik, Imaris, MATLAB and others)",
        "export the picture or mask in it as TIFF",
    ),
    _Unsupported((b"MATLAB",), "this is a MATLAB file", "save the mask by imwrite as PNG"),
    _Unsupported((b"NRRD",), "this is an NRRD volume", "save its slices as TIFF"),
    _Unsupported((b"n+1", b"ni1"), "this is a NIfTI volume", "save its slices as TIFF", 344),
    _Unsupported((b"SIMPLE  =",), "this is a FITS file", "save it as TIFF of floats"),
    _Unsupported((b"v/1\x01",), "this is an OpenEXR picture", "save it as TIFF of floats"),
    _Unsupported(
        (b"#?RADIANCE", b"#?RGBE"), "this is a Radiance picture", "save it as TIFF of floats"
    ),
    _Unsupported((b"\xff\x0a", b"\x00\x00\x00\x0cJXL "), "this is a JPEG XL picture", _FLAT),
    _Unsupported((b"II\xbc",), "this is a JPEG XR picture", _FLAT),
    _Unsupported((b"8BPS",), "this is a Photoshop file", _FLAT),
    _Unsupported((b"gimp xcf",), "this is a GIMP file", _FLAT),
    _Unsupported((b"%PDF",), "this is a PDF", "export its pages as PNG or TIFF"),
    _Unsupported((b"%!PS", b"\xc5\xd0\xd3\xc6"), "this is PostScript", _FLAT),
    _Unsupported((b"DDS ",), "this is a DDS picture", _FLAT),
    _Unsupported((b"\x01\xda",), "this is an SGI picture", _FLAT),
    _Unsupported((b"SDPX", b"XPDS"), "this is a DPX picture", _FLAT),
    _Unsupported((b"\x80\x2a\x5f\xd7",), "this is a Cineon picture", _FLAT),
    _Unsupported((b"Y\xa6j\x95",), "this is a Sun picture", _FLAT),
    _Unsupported((b"TRUEVISION-XFILE.",), "this is a TGA picture", _FLAT, -18),
    _Unsupported((b"id=ImageMagick", b"\x8aMNG"), "this is a file of ImageMagick", _FLAT),
    _Unsupported((b"P7\n",), "this is a PAM picture", "save it as PPM, PNG or TIFF"),
    _Unsupported((b"\x00\x00\x01\x00",), "this is an icon", _FLAT),
    _Unsupported(
        tuple(bytes((10, version, 1)) for version in (0, 2, 3, 5)), "this is a PCX picture", _FLAT
    ),
    _Unsupported(
        (b"PK\x03\x04",), "this is a ZIP inside another", "unpack it and upload its files"
    ),
    _Unsupported(
        (b"Rar!", b"7z\xbc\xaf", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
        "this is an archive or a packed file",
        "pack its files as an ordinary ZIP, or upload them one by one",
    ),
    _Unsupported((b"ustar",), "this is a TAR archive", "pack its files as an ordinary ZIP", 257),
)


def _of_text(content: bytes) -> tuple[str, str] | None:
    """Return the kind of a text by its first words, and the format to save instead."""
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head:
        return "this is a drawing of lines (SVG), not of pixels", _FLAT
    if head.startswith(b"<annotation"):
        return (
            "this is a VOC annotation, whose boxes have no outlines",
            "give masks as PNG, or outlines as COCO or labelme",
        )
    if head.startswith((b"<!doctype html", b"<html")):
        return "this is a web page", "save the picture itself"
    if head.startswith(b"<"):
        return "this is XML without a picture", "give masks as PNG, or outlines as COCO or labelme"
    if head.startswith(b"/* xpm"):
        return "this is an XPM picture", _FLAT
    if head.startswith(b"#define"):
        return "this is an XBM picture", _FLAT
    lines = head.split(b"\n", 20)[:20]
    if lines[0].strip() and all(
        _YOLO_LINE.fullmatch(line.strip()) for line in lines if line.strip()
    ):
        return (
            "these are labels of YOLO, which do not name their classes",
            "export them as COCO, or as masks (PNG)",
        )
    return None


def _is_plain_targa(content: bytes) -> bool:
    """Return True for a TGA picture of the first version, whose header has no signature.

    The possible values of its fields distinguish it from all other kinds in this module.
    """
    if len(content) < _TARGA_HEAD.size:
        return False
    own, has_map, kind, _, colours, entry, _, _, width, height, depth, flags = _TARGA_HEAD.unpack(
        content[: _TARGA_HEAD.size]
    )
    depths = {1: (8, 16), 2: (15, 16, 24, 32), 3: (8, 16)}.get(kind & 7, ())
    is_mapped = has_map == 1 and colours > 0 and entry in (15, 16, 24, 32)
    if kind & ~11 or depth not in depths or flags & 0xC0 or flags & 0x0F > 8:
        return False
    if has_map > 1 or (kind & 7 == 1 and not is_mapped) or not width * height:
        return False
    head = _TARGA_HEAD.size + own + (colours * -(-entry // 8) if is_mapped else 0)
    pixels = 1 if kind & 8 else width * height * -(-depth // 8)
    return len(content) >= int(head + pixels)


def refuse_unsupported_format(content: bytes, label: str) -> None:
    """Refuse a file that is no picture, naming its kind, if its first bytes show it.

    Raises
    ------
    InvalidProblemError
        Naming the file, its kind, and the format to save instead.
    """
    found = next(((s.what, s.instead) for s in _STRANGERS if content in s), _of_text(content))
    if found is None and _is_plain_targa(content):
        found = "this is a TGA picture", _FLAT
    if found is not None:
        raise InvalidProblemError(f"{label}: {found[0]}; {found[1]}.")


def unsupported_kind(content: bytes) -> str:
    """Return JPEG_2000, NUMPY, HEIC or MICROSCOPE by the first 64 bytes, or "" for other kinds."""
    if microscope_reader(content) is not None:
        return MICROSCOPE
    if content.startswith((JPEG_2000_HEAD, _CODESTREAM_HEAD)):
        return JPEG_2000
    if content.startswith(_NUMPY_HEAD):
        return NUMPY
    if content[4:8] == b"ftyp":  # its brand, version, further brands
        brands = content[8:12] + content[16 : min(int.from_bytes(content[:4]), 64)]
        if _HEIC_BRANDS & {brands[k : k + 4] for k in range(0, len(brands), 4)}:
            return HEIC
    return ""


def unwrapped(content: bytes, label: str, max_pixels: int) -> bytes:
    """Return JPEG 2000, HEIC, arrays, deep colour PPM and microscope files as TIFF, else the bytes.

    Then only one kind of file needs handling of depths, channels and masks.

    Raises
    ------
    InvalidProblemError
        If it is too large, damaged, or an array of something else than a picture or a mask.
    """
    readers: dict[str, Callable[[bytes, str, int], NDArray[Any]]] = {
        JPEG_2000: _read_jpeg_2000,
        NUMPY: _read_numpy,
        HEIC: _read_heic,
    }
    microscope = microscope_reader(content)
    if microscope is not None:
        return microscope(content, label, max_pixels)
    reader = readers.get(unsupported_kind(content))
    if reader is not None:
        return _as_tiff(reader(content, label, max_pixels))
    if content.startswith(_RAW_HEAD):
        numbers = _read_deep_ppm(content, label, max_pixels)
        return content if numbers is None else _as_tiff(numbers)
    return content


def _damaged(label: str) -> InvalidProblemError:
    return InvalidProblemError(f"{label}: the file is damaged or cut off before the picture ends.")


def _read_jpeg_2000(content: bytes, label: str, max_pixels: int) -> NDArray[Any]:
    """Read all components, after checking the size that the codestream states."""
    start = _codestream(content)
    head = content[start : start + 42]
    if not head.startswith(_CODESTREAM_HEAD) or len(head) < 42:
        raise _damaged(label)
    right, bottom, left, top = struct.unpack(">4I", head[8:24])
    check_pixels(bottom - top, right - left, label, max_pixels)
    (components,) = struct.unpack(">H", head[40:42])
    if not 1 <= components <= MAX_CHANNELS:
        raise InvalidProblemError(
            f"{label}: {components} channels; at most {MAX_CHANNELS} are accepted."
        )
    if 4 * components * (right - left) * (bottom - top) > MAX_STACK_BYTES:
        raise InvalidProblemError(
            f"{label}: unpacks to more than {MAX_STACK_BYTES // 10**6} MB; save its channels "
            "one by one."
        )
    from imagecodecs import jpeg2k_decode  # slow to import

    try:
        numbers = np.asarray(jpeg2k_decode(content))
    except (ValueError, RuntimeError, MemoryError, OverflowError) as error:
        raise _damaged(label) from error
    if numbers.shape[:2] != (bottom - top, right - left):
        raise InvalidProblemError(f"{label}: its channels differ in size; {_FLAT}.")
    return numbers


def _codestream(content: bytes) -> int:
    """Return the start of a JPEG 2000 file's pixels: in its box jp2c, or at 0 without boxes."""
    place = 0
    while content.startswith(JPEG_2000_HEAD) and place + 8 <= len(content):
        length, kind = struct.unpack(">I4s", content[place : place + 8])
        head = 16 if length == 1 else 8
        if kind == b"jp2c":
            return place + head
        if length == 1 and place + head <= len(content):
            (length,) = struct.unpack(">Q", content[place + 8 : place + 16])
        if length < head:
            return len(content)
        place += length
    return place


def _read_heic(content: bytes, label: str, max_pixels: int) -> NDArray[Any]:
    """Read the primary picture of the file, upright, with eight bits a colour."""
    try:
        from pi_heif.heif import open_heif  # an extra; slow to import
    except ImportError:
        refuse_unsupported_format(content, label)
        raise
    try:
        picture = open_heif(io.BytesIO(content))
        width, height = picture.size
        check_pixels(height, width, label, max_pixels)
        return np.asarray(picture)
    except InvalidProblemError:
        raise
    except (*_HEIC_ERRORS, MemoryError) as error:
        raise _damaged(label) from error


def _read_numpy(content: bytes, label: str, max_pixels: int) -> NDArray[Any]:
    """Read an array of numbers of one picture or mask; nothing in it is ever executed."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0
        shape, is_columns_first, dtype = (
            read(stream) if version == (1, 0) else np.lib.format.read_array_header_2_0(stream)
        )
    except UNREADABLE as error:
        raise _damaged(label) from error
    if dtype.hasobject:
        raise InvalidProblemError(
            f"{label}: holds objects of Python, which may run programs and are not opened here; "
            "save the masks in it as PNG or TIFF (Cellpose: File, Save masks as PNG/tif)."
        )
    if dtype.kind not in "buif" or len(shape) not in (2, 3):
        kind = " x ".join(str(side) for side in shape) or "a single"
        raise InvalidProblemError(
            f"{label}: expected numbers of shape (height, width) or (height, width, channels), "
            f"received {kind} of {dtype}."
        )
    planes_first = len(shape) == 3 and shape[0] < shape[2] and shape[0] <= MAX_CHANNELS
    height, width = shape[1:] if planes_first else shape[:2]
    check_pixels(height, width, label, max_pixels)
    if len(shape) == 3 and not 1 <= shape[0 if planes_first else 2] <= MAX_CHANNELS:
        raise InvalidProblemError(f"{label}: 1 to {MAX_CHANNELS} channels are accepted.")
    values = np.frombuffer(content, np.uint8, offset=stream.tell())
    count = int(np.prod(shape)) * dtype.itemsize
    if len(values) < count:
        raise _damaged(label)
    flat = values[:count].view(dtype)
    numbers = flat.reshape(shape[::-1]).T if is_columns_first else flat.reshape(shape)
    return _narrowed(np.moveaxis(numbers, 0, 2) if planes_first else numbers)


def _narrowed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the values in a type that pictures have; booleans become 0 and 1, as in a mask."""
    if numbers.dtype.kind == "b":
        return np.where(numbers, np.uint8(255), np.uint8(0))
    if numbers.dtype.kind == "f":
        with np.errstate(over="ignore"):  # values beyond the range cannot be shown either
            return numbers.astype(np.float32)
    least, most = int(numbers.min()), int(numbers.max())
    for kind in (np.uint8, np.uint16, np.uint32, np.int32):
        limits = np.iinfo(kind)
        is_within = limits.min <= least and most <= limits.max
        if is_within and numbers.dtype.itemsize > limits.bits // 8:
            return numbers.astype(kind)
    return numbers.astype(numbers.dtype.newbyteorder("="))


def _read_deep_ppm(content: bytes, label: str, max_pixels: int) -> NDArray[Any] | None:
    """Read sixteen bits a colour (the picture decoder keeps eight of them); None for eight bits."""
    numbers: list[int] = []
    place = len(_RAW_HEAD)
    while len(numbers) < 3:
        line = content[place : place + 1]
        if line == b"#":
            place = content.find(b"\n", place) + 1 or len(content)
        elif line.isspace():
            place += 1
        else:
            word = content[place : place + 12].split(maxsplit=1)
            if not word or not word[0].isdigit():
                return None  # the picture decoder explains the fault in its message
            numbers.append(int(word[0]))
            place += len(word[0])
    width, height, most = numbers
    if not 255 < most <= _DEEPEST:
        return None
    check_pixels(height, width, label, max_pixels)
    count = 3 * width * height
    if len(content) < place + 1 + 2 * count:
        raise _damaged(label)
    values = np.frombuffer(content, ">u2", count, place + 1)
    return values.reshape(height, width, 3).astype(np.uint16)


def _as_tiff(numbers: NDArray[Any]) -> bytes:
    """Return the numbers as a TIFF file: three or four channels of whole numbers are colours."""
    from tifffile import imwrite  # slow to import

    stream = io.BytesIO()
    is_colour = numbers.ndim == 3 and numbers.shape[2] in (3, 4) and numbers.dtype.kind == "u"
    if numbers.ndim == 3 and not is_colour:
        numbers = np.moveaxis(numbers, 2, 0)
        options: dict[str, Any] = {"metadata": {"axes": "CYX"}, "photometric": "minisblack"}
        if numbers.shape[0] == 1:
            numbers, options = numbers[0], {"photometric": "minisblack"}
    else:
        options = {"photometric": "rgb" if is_colour else "minisblack"}
    imwrite(stream, np.ascontiguousarray(numbers), **options)
    return stream.getvalue()
