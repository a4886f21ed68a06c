"""Files as cameras, satellites and other programs write them: shown right, or refused by cause."""

import contextlib
import io
import struct
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile

from engine.core.errors import InvalidProblemError
from engine.datasets.large_pictures import LargeTiff, is_large
from engine.datasets.masks import read_mask
from engine.datasets.picture_view import read_deep, read_image, read_picture
from engine.datasets.probability_maps import read_map
from engine.datasets.tiff_files import has_circle
from engine.datasets.tiff_pictures import TIFF_HEADS, read_tiff_samples
from tests.datasets.pictures import gradient

DEEP = (gradient(24, 32).astype(np.uint16) * 257)[:, :, ::-1]
BYTES = gradient(24, 32)


def tiff(numbers, **options) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, numbers, **options)
    return stream.getvalue()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("packing", [None, "lzw", "zlib", "packbits", "zstd", "lzma"])
@pytest.mark.parametrize("numbers", [BYTES, DEEP, DEEP[:, :, 0]], ids=["bytes", "deep", "grey"])
def test_every_packing_in_both_orders_of_bytes_is_one_picture(numbers, packing, order) -> None:
    kind = "minisblack" if numbers.ndim == 2 else "rgb"
    content = tiff(numbers, photometric=kind, compression=packing, byteorder=order)
    expected = read_image(tiff(numbers, photometric=kind))
    assert np.array_equal(read_image(content), expected)
    assert expected.max() > 200


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("numbers", [BYTES, DEEP])
def test_big_tiff_is_read_in_both_orders_of_bytes(numbers, order) -> None:
    content = tiff(numbers, photometric="rgb", bigtiff=True, byteorder=order)
    assert (
        np.abs(read_image(content).astype(int) - (numbers >> 8 * (numbers.max() > 255))).max() < 2
    )


def test_five_channels_of_bytes_are_channels() -> None:
    five = np.repeat(BYTES[:, :, :1], 5, axis=2)
    stack = read_deep(tiff(five, photometric="minisblack", planarconfig="contig"))
    assert stack is not None
    assert stack.planes.shape == (1, 5, 24, 32)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_channels_last_of_a_script_are_channels(count: int) -> None:
    """tifffile makes a page of every row: the picture was as wide as it had channels."""
    numbers = np.stack([DEEP[:, :, 0] // (k + 1) for k in range(count)], axis=2)
    stack = read_deep(tiff(numbers))
    assert stack is not None
    assert stack.planes.shape == (1, count, 24, 32)
    assert np.array_equal(stack.planes[0, -1], numbers[:, :, -1])
    pages = read_deep(tiff(np.stack([DEEP[:, :, 0]] * 6)))
    assert pages is not None
    assert pages.planes.shape == (6, 1, 24, 32)


def test_deep_whites_noted_as_zero_are_light() -> None:
    content = tiff(65535 - DEEP[:, :, 0], photometric="miniswhite")
    assert np.array_equal(read_image(content), read_image(tiff(DEEP[:, :, 0])))


def test_gaps_of_satellites_do_not_flatten_the_rest() -> None:
    heights = np.linspace(200, 900, 24 * 32, dtype=np.float32).reshape(24, 32)
    heights[:3] = -9999
    tag = (42113, "s", 0, "-9999", True)
    shown = read_image(tiff(heights, extratags=[tag]))
    assert not shown[:3].any()
    assert shown[3:].std() > 60


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.uint16])
def test_cielab_keeps_its_colours(kind) -> None:
    lab = np.full((8, 8, 3), (53.24, 80.09, 67.2))  # pure red
    if kind is np.uint8:
        lab[..., 0] *= 255 / 100
    if kind is np.uint16:
        lab *= (65535 / 100, 256, 256)
    shown = read_image(tiff(lab.astype(kind), photometric="cielab"))
    assert np.abs(shown[0, 0].astype(int) - (255, 0, 0)).max() < 6


def test_twelve_bits_in_a_deep_colour_png_are_not_black() -> None:
    content = imagecodecs.png_encode(np.ascontiguousarray(DEEP >> 4))
    stack = read_deep(content)
    assert stack is not None
    assert np.array_equal(stack.planes[0].transpose(1, 2, 0), DEEP >> 4)
    assert read_image(content).max() > 200


def test_a_deep_png_of_sixteen_bits_is_shown_as_viewers_do() -> None:
    shown = read_image(imagecodecs.png_encode(np.ascontiguousarray(DEEP)))
    assert np.abs(shown.astype(int) - (DEEP >> 8)).max() <= 1


def test_a_deep_png_is_refused_by_its_size_before_it_is_unpacked() -> None:
    head = b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 16, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n\x00\x00\x00\r" + head + struct.pack(">I", zlib.crc32(head))
    with pytest.raises(InvalidProblemError, match="100000 x 100000 pixels is too large"):
        read_image(content)


def test_a_deep_png_that_is_cut_off_says_so() -> None:
    content = imagecodecs.png_encode(np.random.default_rng(0).integers(0, 65535, (40, 40, 3), "u2"))
    with pytest.raises(InvalidProblemError, match="damaged or cut off"):
        read_image(content[: len(content) // 2])


def test_a_packing_that_is_not_opened_is_named() -> None:
    content = tiff(DEEP, photometric="rgb", compression="lerc")
    with pytest.raises(InvalidProblemError, match="packed by LERC"):
        read_image(content)


@pytest.mark.parametrize("numbers", [BYTES, DEEP, BYTES[:, :, 0]], ids=["bytes", "deep", "grey"])
def test_tiff_packed_by_jpeg_2000_is_read(numbers) -> None:
    kind = "minisblack" if numbers.ndim == 2 else "rgb"
    content = tiff(numbers, photometric=kind, compression="jpeg2000")
    assert np.array_equal(read_image(content), read_image(tiff(numbers, photometric=kind)))


@pytest.mark.parametrize("is_big", [False, True], ids=["classic", "big"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("n_pages", [1, 2, 5])
def test_pages_in_a_circle_are_refused_at_once(n_pages: int, order: str, is_big: bool) -> None:
    """Two pages of a 3 kB file named each other as the next page; reading never ended."""
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, bigtiff=is_big, byteorder=order) as file:
        for _ in range(n_pages):
            file.write(np.zeros((8, 8), np.uint8), contiguous=False, metadata=None)
    content = bytearray(stream.getvalue())
    assert not has_circle(bytes(content))
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        first, last = file.pages[0], file.pages[n_pages - 1]
        size, count = ("Q", "Q") if is_big else ("I", "H")
        head, entry = (8, 20) if is_big else (2, 12)
        (n_tags,) = struct.unpack_from(f"{order}{count}", content, last.offset)
        struct.pack_into(
            f"{order}{size}", content, last.offset + head + n_tags * entry, first.offset
        )
    assert has_circle(bytes(content))
    with pytest.raises(InvalidProblemError, match=r"a\.tif: its pages follow each other"):
        read_tiff_samples(bytes(content), "a.tif", 10_000)
    assert not has_circle(bytes(content[:9]))


def test_damaged_notes_of_microscopes_hide_no_picture() -> None:
    notes = '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><I'
    content = tiff(DEEP[:, :, 0], description=notes)
    assert read_picture(content).pixel_size is None
    assert read_image(content).max() > 200


@pytest.mark.parametrize("head", TIFF_HEADS)
@pytest.mark.parametrize("rest", [0, 1, 3, 4, 7, 11])
def test_a_tiff_that_ends_within_its_head_is_refused_in_words(head, rest, tmp_path) -> None:
    path = tmp_path / "cut.tif"
    path.write_bytes(head + bytes(rest))
    for read in (read_image, read_deep, read_map, LargeTiff):
        with pytest.raises(InvalidProblemError, match=r"cut\.tif"):
            read(path)
    assert not is_large(path)


def test_a_tiff_cut_anywhere_never_fails_in_other_ways(tmp_path) -> None:
    path = tmp_path / "cut.tif"
    for options in ({}, {"bigtiff": True}, {"ome": True, "metadata": {"axes": "CYX"}}):
        content = tiff(np.moveaxis(DEEP, -1, 0), **options)
        for end in (*range(20), *range(20, len(content), 97)):
            path.write_bytes(content[:end])
            for read in (read_image, read_map, LargeTiff, is_large):
                with contextlib.suppress(InvalidProblemError):
                    read(path)


def pictures_of_one_file(*sizes: int, is_ome: bool, **options: int) -> bytes:
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, ome=is_ome) as writer:
        for k, side in enumerate(sizes):
            about = {"Name": f"position {k}"} if is_ome else None
            kind = options if side == min(sizes) < max(sizes) else {}
            numbers = np.full((side, side), 50 * k + 50, np.uint8)
            writer.write(numbers, photometric="minisblack", metadata=about, **kind)
    return stream.getvalue()


@pytest.mark.parametrize("sizes", [(40, 40), (40, 36), (40, 40, 40)])
@pytest.mark.parametrize("read", [read_image, read_mask])
def test_several_pictures_in_one_ome_tiff_are_refused(read, sizes: tuple[int, ...]) -> None:
    """The first one stood for all."""
    content = pictures_of_one_file(*sizes, is_ome=True)
    with pytest.raises(InvalidProblemError, match=f"it holds {len(sizes)} pictures; save each"):
        read(content)


@pytest.mark.parametrize(("sizes", "shade"), [((10, 40), 100), ((40, 10), 50)])
@pytest.mark.parametrize("options", [{"subfiletype": 1}, {}], ids=["noted", "smaller"])
def test_a_thumbnail_beside_a_picture_is_not_the_picture(sizes, shade, options) -> None:
    shown = read_image(pictures_of_one_file(*sizes, is_ome=False, **options))
    assert shown.shape == (40, 40, 3)
    assert (shown == shade).all()


@pytest.mark.parametrize("colour", [(0,), (20_000,), (20_000, 20_000, 0)])
def test_a_transparent_colour_of_sixteen_bits_is_white(colour: tuple[int, ...]) -> None:
    """It was shown as it stands: the picture decoder drops the note."""
    scene = np.zeros((20, 30, len(colour)), np.uint16)
    scene[5:9, 4:12, :2], scene[12:, 20:] = 20_000, 40_000
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in scene)
    kind = 0 if len(colour) == 1 else 2
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 30, 20, 16, kind, 0, 0, 0)),
        (b"tRNS", struct.pack(f">{len(colour)}H", *colour)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    shown = read_image(content)
    hidden = (scene == np.array(colour)).all(axis=2)
    assert hidden.any()
    assert (shown[hidden] == 255).all()
    assert (shown[~hidden] < 255).any(axis=1).all()
