"""Pictures as people really upload them."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.masks import read_mask
from engine.datasets.picture_view import read_image
from tests.datasets.pictures import encode, gradient, in_mode


def test_it_reads_what_was_written() -> None:
    values = gradient()
    assert_array_equal(read_image(encode(Image.fromarray(values))), values)


def test_one_pixel_is_a_picture() -> None:
    assert read_image(encode(Image.new("RGB", (1, 1), (9, 8, 7)))).tolist() == [[[9, 8, 7]]]


def test_a_camera_held_sideways_is_turned_upright() -> None:
    values = np.zeros((10, 30, 3), dtype=np.uint8)
    values[:, :5] = 255  # the left end of what the sensor saw
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to view"
    upright = read_image(encode(Image.fromarray(values), "JPEG", exif=exif, quality=95))
    assert upright.shape == (30, 10, 3)
    assert upright[:4].mean() > 200
    assert upright[8:].mean() < 50


def test_transparency_is_laid_on_white() -> None:
    picture = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    picture.putpixel((1, 0), (0, 0, 0, 0))
    assert read_image(encode(picture)).tolist() == [[[255, 0, 0], [255, 255, 255]]]


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "LAB", "LA"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    form = {"CMYK": "TIFF", "YCbCr": "JPEG", "LAB": "TIFF"}.get(mode, "PNG")
    image = read_image(encode(in_mode(Image.fromarray(gradient()), mode), form))
    assert image.shape == (12, 20, 3)
    assert image[-1, -1].mean() > image[0, 0].mean() + 100


def test_cmyk_jpeg_keeps_its_colours() -> None:
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    assert read_image(encode(red, "JPEG", quality=95))[8, 8] == pytest.approx([255, 0, 0], abs=8)


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    deep = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    image = read_image(encode(Image.fromarray(deep)))
    assert_array_equal(image[:, :, 0], np.arange(256).reshape(16, 16))


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_several_frames_or_pages_the_first_is_read(form: str) -> None:
    frames = [Image.new("RGB", (8, 6), colour) for colour in ((250, 0, 0), (0, 0, 250))]
    content = encode(frames[0], form, save_all=True, append_images=frames[1:])
    with Image.open(io.BytesIO(content)) as picture:
        assert getattr(picture, "n_frames", 1) == 2
    image = read_image(content)
    assert image.shape == (6, 8, 3)
    assert image[0, 0, 0] > 200
    assert image[0, 0, 2] < 50


def test_a_picture_of_several_tiles_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each square is converted by itself, but deep grey is scaled by the range of the whole."""
    clear = Image.fromarray(gradient(50, 70)).convert("RGBA")
    clear.putalpha(Image.fromarray(gradient(50, 70)[::-1, :, 0].copy()))
    deep = Image.fromarray(np.linspace(0, 1e6, 3500).astype(np.int32).reshape(50, 70), mode="I")
    whole = [read_image(encode(picture, "TIFF")) for picture in (clear, deep)]
    assert whole[1].max() == 255
    monkeypatch.setattr("engine.datasets.images.TILE_SIDE", 16)
    for picture, expected in zip((clear, deep), whole, strict=True):
        assert_array_equal(read_image(encode(picture, "TIFF")), expected)


def test_a_wrong_extension_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "really_a_png.jpg"
    path.write_bytes(encode(Image.fromarray(gradient())))
    assert_array_equal(read_image(path), gradient())


def huge_png(side: int) -> bytes:
    """A well-formed PNG of side x side white bits: a few kilobytes on disk."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    row = b"\x00" + b"\xff" * ((side + 7) // 8)
    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8_000, 12_000, 20_000])
def test_a_bomb_is_refused_by_its_size(side: int) -> None:
    content = huge_png(side)
    assert len(content) < 200_000
    with pytest.raises(InvalidProblemError, match=r"bomb\.png: .*too large.*50 megapixels"):
        read_image(content, name="bomb.png")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"hello, I am a text", "not a picture"),
        (b"\x89PNG\r\n\x1a\n", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "this is PostScript; export it"),
        (b"GIF89a", "not a picture"),
    ],
)
def test_what_is_no_picture_is_refused_in_one_sentence(content: bytes, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words) as caught:
        read_image(content, name="upload.jpg")
    assert str(caught.value).startswith("upload.jpg: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"])
def test_a_truncated_file_is_refused(form: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    content = encode(Image.fromarray(noise), form)
    with pytest.raises(InvalidProblemError, match=r"cut off|not a picture"):
        read_image(content[: len(content) // 2])


@pytest.mark.parametrize("seed", range(60))
def test_damaged_bytes_never_escape_as_another_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    form = ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"][seed % 6]
    content = bytearray(encode(Image.fromarray(gradient()), form))
    for place in rng.integers(0, len(content), 12):
        content[place] = int(rng.integers(256))
    try:
        image = read_image(bytes(content), max_pixels=10**6)
    except InvalidProblemError:
        return
    assert image.ndim == 3
    assert image.dtype == np.uint8


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblemError, match=r"nothing\.png: cannot be opened"):
        read_image(tmp_path / "nothing.png")


def test_a_conversion_that_fails_is_a_damaged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object) -> Image.Image:
        raise ValueError("conversion not supported")

    clear = Image.fromarray(gradient()).quantize(8)
    content = encode(clear, transparency=0)
    monkeypatch.setattr(Image.Image, "convert", fail)
    for read in (read_image, read_mask):
        with pytest.raises(InvalidProblemError, match=r"x\.png: .*damaged"):
            read(content, name="x.png")


@pytest.mark.parametrize(
    "values",
    [
        np.uint16(np.linspace(0, 4095, 4800)).reshape(60, 80),
        np.float32(np.linspace(-3, 900, 4800)).reshape(60, 80),
        np.int32(np.linspace(0, 3_000_000, 4800)).reshape(60, 80),
        np.uint16(np.linspace(104, 375, 4800)).reshape(60, 80),
    ],
)
def test_deep_values_that_use_little_of_their_range_are_stretched(values: np.ndarray) -> None:
    """Twelve bits in a 16-bit file, floats and 32-bit counts came out black."""
    grey = read_image(encode(Image.fromarray(values), "TIFF"))[:, :, 0]
    assert grey.min() == 0
    assert grey.max() == 255
    expected = np.linspace(0, 255, 4800).reshape(60, 80)
    assert np.abs(grey - expected).max() < 2


def test_one_hot_pixel_does_not_turn_a_deep_picture_black() -> None:
    values = np.uint16(np.linspace(100, 400, 4800)).reshape(60, 80)
    values[5, 5] = 20_000
    grey = read_image(encode(Image.fromarray(values), "TIFF"))[:, :, 0]
    assert 100 < np.median(grey) < 160


def test_sixteen_bits_in_full_and_fractions_are_shown_by_their_range() -> None:
    full = np.uint16(np.linspace(0, 60_000, 4800)).reshape(60, 80)
    assert read_image(encode(Image.fromarray(full), "TIFF")).max() == round(60_000 / 257)
    fractions = np.full((4, 4), 0.5, dtype=np.float32)
    assert (read_image(encode(Image.fromarray(fractions), "TIFF")) == 128).all()


def test_avif_is_read() -> None:
    values = np.full((16, 16, 3), 200, dtype=np.uint8)
    read = read_image(encode(Image.fromarray(values), "AVIF", quality=95))
    assert np.abs(read.astype(int) - 200).max() < 6
