"""Files that no picture decoder opens: JPEG 2000, NumPy, deep PPM are read; others are named."""

import io

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.masks import read_mask
from engine.datasets.picture_view import read_deep, read_image
from tests.datasets.pictures import gradient

BYTES = gradient(24, 32)
TWELVE_BITS = (BYTES.astype(np.uint16) << 4) + 7


def array_file(numbers: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, numbers)
    return stream.getvalue()


def ppm(numbers: np.ndarray, note: bytes = b"") -> bytes:
    """As ImageMagick writes it: two bytes a colour, the larger first."""
    head = b"P6\n" + note + b"%d %d\n65535\n" % numbers.shape[1::-1]
    return head + numbers.astype(">u2").tobytes()


def stretched(numbers: np.ndarray) -> np.ndarray:
    deep = read_deep(ppm(numbers))
    assert deep is not None
    return deep.planes[0].transpose(1, 2, 0)


@pytest.mark.parametrize("form", ["jp2", "j2k"])
def test_jpeg_2000_of_eight_bits_is_the_picture(form) -> None:
    content = imagecodecs.jpeg2k_encode(BYTES, level=0, reversible=True, codecformat=form)
    assert np.array_equal(read_image(content), BYTES)


def test_jpeg_2000_of_twelve_bits_keeps_them() -> None:
    content = imagecodecs.jpeg2k_encode(TWELVE_BITS, level=0, reversible=True)
    stack = read_deep(content)
    assert stack is not None
    assert np.array_equal(stack.planes[0].transpose(1, 2, 0), TWELVE_BITS)
    assert read_image(content).max() > 200


def test_jpeg_2000_is_refused_by_its_size_before_it_is_unpacked() -> None:
    content = bytearray(imagecodecs.jpeg2k_encode(BYTES, level=0))
    place = content.index(b"\xff\x4f\xff\x51") + 8
    content[place : place + 8] = (200_000).to_bytes(4, "big") * 2
    with pytest.raises(InvalidProblemError, match="200000 x 200000 pixels is too large"):
        read_image(bytes(content))


@pytest.mark.parametrize("kept", [13, 60, 100, 300])
def test_jpeg_2000_that_is_cut_off_says_so(kept) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)
    content = imagecodecs.jpeg2k_encode(noise, level=0, reversible=True)
    with pytest.raises(InvalidProblemError, match="damaged or cut off"):
        read_image(content[:kept])


def test_twelve_bits_in_a_deep_ppm_are_not_black() -> None:
    assert np.array_equal(stretched(TWELVE_BITS), TWELVE_BITS)
    assert read_image(ppm(TWELVE_BITS, b"# a note\n")).max() > 200
    with pytest.raises(InvalidProblemError, match="damaged or cut off"):
        read_image(ppm(TWELVE_BITS)[:-1])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    "numbers", [BYTES, BYTES.astype(np.int64), np.moveaxis(BYTES, 2, 0)], ids=["u1", "i8", "planes"]
)
def test_arrays_of_numpy_are_pictures(numbers, order) -> None:
    assert np.array_equal(read_image(array_file(np.array(numbers, order=order))), BYTES)


def test_arrays_of_numpy_are_masks_and_maps_of_objects() -> None:
    mask = np.zeros((24, 32), bool)
    mask[3:9, 4:20] = True
    assert np.array_equal(read_mask(array_file(mask)), mask)
    objects = np.zeros((24, 32), np.int32)
    for k in range(8):
        objects[3 * k : 3 * k + 2, 2 + k : 12 + k] = k + 1
    assert np.array_equal(read_mask(array_file(objects)), objects > 0)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (np.array({"masks": 1}, dtype=object), "objects of Python, which may run programs"),
        (np.zeros((2, 3, 4, 5)), "received 2 x 3 x 4 x 5 of float64"),
        (np.zeros((4, 5), complex), "of complex128"),
        (np.zeros((4, 5, 0)), "1 to 32 channels"),
        (np.zeros((40, 50, 60), np.uint8), "1 to 32 channels"),
        (np.zeros((0, 5)), "has no pixels"),
    ],
)
def test_other_arrays_are_refused_by_cause(numbers, reason) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        read_image(array_file(numbers))


def test_arrays_that_are_too_large_or_cut_off_are_refused() -> None:
    content = array_file(np.zeros((24, 32)))
    with pytest.raises(InvalidProblemError, match="damaged or cut off"):
        read_image(content[:-9])
    with pytest.raises(InvalidProblemError, match="damaged or cut off"):
        read_image(content[:20])
    large = content.replace(b"(24, 32)", b"(99999, 99999)")
    with pytest.raises(InvalidProblemError, match="99999 x 99999 pixels is too large"):
        read_image(large)


HEADS = {
    "DICOM": bytes(128) + b"DICM",
    "SVG": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>',
    "VOC annotation": b"<annotation><object><bndbox/></object></annotation>",
    "ImageJ ROI": b"Iout\x00\xe5",
    "Zeiss CZI": b"ZISRAWFILE",
    "Nikon ND2": b"\xda\xce\xbe\x0a",
    "HDF5": b"\x89HDF\r\n\x1a\n",
    "MATLAB": b"MATLAB 5.0 MAT-file",
    "Photoshop": b"8BPS\x00\x01",
    "PDF": b"%PDF-1.7",
    "video": b"\x00\x00\x00\x18ftypisom",
    "JPEG XL": b"\xff\x0a\xfa\x7f",
    "FITS": b"SIMPLE  =                    T",
    "PCX": b"\x0a\x05\x01\x08",
    "TGA": bytes(30) + b"TRUEVISION-XFILE.\x00",
    "web page": b"<!DOCTYPE html><html>",
}


@pytest.mark.parametrize("kind", HEADS)
def test_what_is_not_read_is_named_with_what_to_save_instead(kind) -> None:
    with pytest.raises(InvalidProblemError, match=rf"scan\.x: .*{kind}.*; ") as refused:
        read_image(HEADS[kind] + bytes(200 * (kind != "TGA")), name="scan.x")
    assert "not a picture" not in str(refused.value)


def _without_footer(mode: str, packing: str | None) -> bytes:
    """A TGA as programs wrote it before there were footers."""
    buffer = io.BytesIO()
    with Image.new("L", (7, 5), 1).convert(mode) as picture:
        picture.save(buffer, "TGA", compression=packing)
    content = buffer.getvalue()
    assert content.endswith(b"TRUEVISION-XFILE.\x00")
    return content[:-26]


@pytest.mark.parametrize("packing", [None, "tga_rle"])
@pytest.mark.parametrize("mode", ["L", "P", "RGB", "RGBA"])
def test_a_tga_without_its_footer_is_named(mode, packing) -> None:
    content = _without_footer(mode, packing)
    with pytest.raises(InvalidProblemError, match="this is a TGA picture; export it as PNG"):
        read_image(content, name="scan.tga")


@pytest.mark.parametrize("place", [1, 2, 12, 16, 17])
def test_other_bytes_are_no_tga(place) -> None:
    content = bytearray(_without_footer("L", None))
    content[place] = {12: 0}.get(place, 0xFF)
    with pytest.raises(InvalidProblemError) as refused:
        read_image(bytes(content), name="scan")
    assert "TGA" not in str(refused.value)


def test_labels_of_yolo_are_refused_by_name() -> None:
    for content in (b"0 0.5 0.5 0.25 0.25\n", b"2 0.1 0.1 0.2 0.1 0.2 0.2\n0 0.5 0.5 0.1 0.1"):
        with pytest.raises(InvalidProblemError, match=r"a\.txt: these are labels of YOLO.*COCO"):
            read_image(content, name="a.txt")
