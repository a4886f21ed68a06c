"""Deep pictures, stacks and channels, in files of the programs that labs use."""

from io import BytesIO

import imageio.v3 as iio
import numpy as np
import pytest
import tifffile
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from engine import InvalidProblemError
from engine.datasets import read_image
from engine.datasets.picture_view import (
    BRIGHTEST,
    ChannelView,
    PictureView,
    choose_view,
    picture_facts,
    read_deep,
    read_picture,
    show_stack,
    view_from_json,
)

TWELVE = np.linspace(100, 4000, 2400).reshape(40, 60).astype(np.uint16)


def tiff(values: np.ndarray, **options: object) -> bytes:
    buffer = BytesIO()
    tifffile.imwrite(buffer, values, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "kind", "bits"),
    [
        (tiff(TWELVE), "16 bit whole", 12),
        (tiff(TWELVE, compression="zlib", tile=(32, 32)), "16 bit whole", 12),
        (tiff(TWELVE, bigtiff=True), "16 bit whole", 12),
        (tiff(TWELVE.astype(np.uint32) * 300), "32 bit whole", 22),
        (tiff(TWELVE.astype(np.float32) / 900 - 2), "32 bit float", 0),
        (tiff(TWELVE.astype(np.float64)), "64 bit float", 0),
        (tiff(TWELVE.astype(np.int16) - 900), "16 bit signed", 12),
        (iio.imwrite("<bytes>", TWELVE, extension=".png"), "16 bit whole", 12),
    ],
)
def test_deep_values_are_read_as_they_are_and_shown_stretched(content, kind, bits) -> None:
    """Shown by the range of their type they would be black."""
    stack = read_deep(content)
    assert stack is not None
    facts = picture_facts(stack)
    assert (facts.kind, facts.bits, facts.n_channels, facts.n_pages) == (kind, bits, 1, 1)
    shown = read_image(content)[:, :, 0]
    assert shown.min() == 0
    assert shown.max() == 255
    assert np.median(shown) == pytest.approx(127, abs=4)


def test_one_view_shows_the_same_value_alike_in_every_picture() -> None:
    dim, bright = tiff(TWELVE // 4), tiff(TWELVE)
    view = choose_view([read_deep(dim), read_deep(bright)])
    shown = [read_image(content, view=view).astype(int) for content in (dim, bright)]
    assert_allclose(shown[0].mean() * 4, shown[1].mean(), rtol=0.05)


@pytest.mark.parametrize(
    "content",
    [
        tiff(
            np.stack([TWELVE, TWELVE[::-1, ::-1]]),
            photometric="minisblack",
            planarconfig="separate",
        ),
        tiff(np.stack([TWELVE, TWELVE[::-1, ::-1]]), imagej=True, metadata={"axes": "CYX"}),
        tiff(np.stack([TWELVE, TWELVE[::-1, ::-1]]), ome=True, metadata={"axes": "CYX"}),
    ],
)
def test_channels_are_a_composite_of_the_colours_chosen(content) -> None:
    stack = read_deep(content)
    assert stack.planes.shape == (1, 2, 40, 60)
    view = choose_view([stack], colours=("red", "off"))
    shown = show_stack(stack, view)
    assert shown[-1, -1].tolist() == [255, 0, 0]
    both = show_stack(stack, choose_view([stack]))
    assert both[0, 0].tolist() == [255, 0, 255]
    assert both[-1, -1].tolist() == [0, 255, 0]


def test_pages_are_chosen_or_the_brightest_of_all_is_taken() -> None:
    pages = np.stack([TWELVE, np.zeros_like(TWELVE), TWELVE[::-1]])
    stack = read_deep(tiff(pages, imagej=True, metadata={"axes": "ZYX"}))
    channel = (ChannelView("grey", 0.0, 4000.0),)
    assert show_stack(stack, PictureView(channel, 1)).max() == 0
    brightest = show_stack(stack, PictureView(channel, BRIGHTEST))
    assert brightest[0, 0, 0] == brightest[-1, 0, 0] > 240
    assert_array_equal(
        show_stack(stack, PictureView(channel, 99)), show_stack(stack, PictureView(channel, 2))
    )


def test_planar_and_deep_colours_keep_their_colour() -> None:
    colours = np.stack([TWELVE, TWELVE // 2, TWELVE // 4])
    planar = read_image(tiff(colours, photometric="rgb", planarconfig="separate"))
    chunky = read_image(tiff(np.moveaxis(colours, 0, -1), photometric="rgb"))
    assert_array_equal(planar, chunky)
    assert planar[-1, -1].astype(int).tolist() == pytest.approx([255, 126, 62], abs=3)


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (tiff(TWELVE, resolution=(1 / 0.325e-4, 1 / 0.325e-4), resolutionunit=3), 0.325),
        (tiff(TWELVE, imagej=True, resolution=(4, 4), metadata={"unit": "um"}), 0.25),
        (tiff(TWELVE, ome=True, metadata={"axes": "YX", "PhysicalSizeX": 0.65}), 0.65),
        (tiff(TWELVE, resolution=(300, 300), resolutionunit=2), None),
    ],
)
def test_the_size_of_a_pixel_is_what_microscopes_write_and_no_printer_s(content, size) -> None:
    found = read_picture(content).pixel_size
    assert (found and found.x) == (size and pytest.approx(size))


def test_what_is_not_finite_is_black_and_hides_nothing_else() -> None:
    values = TWELVE.astype(np.float32)
    values[:5] = np.nan
    shown = read_image(tiff(values))
    assert shown[:5].max() == 0
    assert shown[-1, -1, 0] == 255


def test_other_pictures_have_no_view() -> None:
    buffer = BytesIO()
    Image.fromarray((TWELVE // 16).astype(np.uint8)).save(buffer, "TIFF", compression="tiff_lzw")
    view = PictureView((ChannelView("red", 0.0, 1.0),))
    assert read_deep(buffer.getvalue()) is None
    assert_array_equal(read_image(buffer.getvalue()), read_image(buffer.getvalue(), view=view))


def test_complex_numbers_and_huge_stacks_are_refused_in_words() -> None:
    with pytest.raises(InvalidProblemError, match="not real numbers"):
        read_image(tiff(TWELVE.astype(np.complex64)))
    with pytest.raises(InvalidProblemError, match="is too large; at most"):
        read_image(tiff(np.stack([TWELVE] * 2)), max_pixels=1000)


def test_a_kept_view_is_checked() -> None:
    view = PictureView((ChannelView("cyan", 3.0, 4.5),), BRIGHTEST)
    assert view_from_json(view.as_json()) == view
    for damage in ({}, {"channels": []}, {"channels": [{"colour": "red", "low": 2, "high": 2}]}):
        with pytest.raises(InvalidProblemError, match="damaged"):
            view_from_json(damage)


def lzw(*pages: np.ndarray, **options: object) -> bytes:
    """A TIFF packed by LZW, which tifffile alone does not unpack."""
    buffer = BytesIO()
    first, *others = (Image.fromarray(page) for page in pages)
    more = {"save_all": True, "append_images": others} if others else {}
    first.save(buffer, "TIFF", compression="tiff_lzw", **more, **options)
    return buffer.getvalue()


def test_pages_of_sixteen_bits_packed_by_lzw_are_all_read() -> None:
    pages = [TWELVE, TWELVE // 2, 4095 - TWELVE]
    stack = read_deep(lzw(*pages), name="a.tif")
    assert stack is not None
    assert np.array_equal(stack.planes[:, 0], pages)
    assert np.array_equal(stack.planes[:, 0].dtype, np.uint16)
    floats = [page.astype(np.float32) / 7 for page in pages[:2]]
    stack = read_deep(lzw(*floats), name="a.tif")
    assert stack is not None
    assert np.array_equal(stack.planes[:, 0], floats)


def test_a_damaged_page_packed_by_lzw_is_named() -> None:
    content = bytearray(lzw(TWELVE, 4095 - TWELVE))
    with tifffile.TiffFile(BytesIO(bytes(content))) as file:
        start, size = file.pages[1].dataoffsets[0], file.pages[1].databytecounts[0]
    content[start : start + size] = b"\xff" * size
    with pytest.raises(InvalidProblemError, match=r"a\.tif: page 2 of 2 is damaged"):
        read_deep(bytes(content), name="a.tif")


def test_colours_are_not_shown_by_a_view_of_grey_nor_grey_in_red() -> None:
    """Magenta of sixteen bits was white beside a grey picture, and grey was red beside colours."""
    magenta = np.zeros((20, 30, 3), np.uint16)
    magenta[5:15, 5:25] = (50_000, 0, 50_000)
    grey = read_deep(tiff(TWELVE))
    colour = read_deep(tiff(magenta, photometric="rgb"))
    of_grey, of_colour = choose_view([grey]), choose_view([colour])
    shown = show_stack(colour, of_grey)
    assert shown[10, 10, 1] == 0
    assert shown[10, 10, 0] == shown[10, 10, 2] > 150
    other = show_stack(grey, of_colour)
    assert (other[..., 0] == other[..., 1]).all()
    assert view_from_json(of_colour.as_json()) == of_colour
