"""Pictures and masks as people really upload them."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image, ImageCms

from engine.core.errors import InvalidProblemError
from engine.datasets.images import match_mask, read_image, read_mask, write_mask


def encode(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def gradient(height: int = 12, width: int = 20) -> np.ndarray:
    ramp = np.linspace(0, 255, height * width * 3).reshape(height, width, 3)
    return ramp.astype(np.uint8)


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


def in_mode(picture: Image.Image, mode: str) -> Image.Image:
    """Convert; Pillow itself reaches LAB only through a colour profile."""
    if mode != "LAB":
        return picture.convert(mode)
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    converted = ImageCms.profileToProfile(picture, *profiles, outputMode="LAB")
    assert converted is not None
    return converted


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


def test_an_animation_shows_its_first_frame() -> None:
    first, second = Image.new("RGB", (8, 6), (250, 0, 0)), Image.new("RGB", (8, 6), (0, 0, 250))
    image = read_image(encode(first, "GIF", save_all=True, append_images=[second]))
    assert image.shape == (6, 8, 3)
    assert image[0, 0, 0] > 200


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
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
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


def test_masks_of_any_two_values(tmp_path: Path) -> None:
    truth = np.zeros((9, 7), dtype=bool)
    truth[2:5, 1:4] = True
    for low, high in ((0, 255), (0, 1), (0, 38), (100, 200)):
        values = np.where(truth, high, low).astype(np.uint8)
        assert_array_equal(read_mask(encode(Image.fromarray(values))), truth)
    write_mask(tmp_path / "m.png", truth)
    assert_array_equal(read_mask(tmp_path / "m.png"), truth)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr", "LAB", "LA", "I;16"])
def test_a_mask_may_have_any_mode(mode: str) -> None:
    """A mask in LAB used to end the whole batch: Pillow has no way from there to grey."""
    truth = np.zeros((16, 24), dtype=bool)
    truth[:8, 8:] = True  # whole blocks of a JPEG, whose colours would spread over their edges
    if mode == "I;16":
        picture = Image.fromarray(truth.astype(np.uint16) * 65535)
    else:
        picture = in_mode(Image.fromarray(np.dstack([truth] * 3).astype(np.uint8) * 255), mode)
    form = {"CMYK": "TIFF", "YCbCr": "JPEG", "LAB": "TIFF"}.get(mode, "PNG")
    assert_array_equal(read_mask(encode(picture, form)), truth)


def test_a_mask_is_turned_upright_as_its_picture_is() -> None:
    truth = np.zeros((10, 30), dtype=bool)
    truth[:, :5] = True
    exif = Image.Exif()
    exif[0x0112] = 6
    mask = read_mask(encode(Image.fromarray(truth.astype(np.uint8) * 255), exif=exif))
    assert_array_equal(mask, np.rot90(truth, -1))


def test_a_conversion_that_fails_is_a_damaged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object) -> Image.Image:
        raise ValueError("conversion not supported")

    content = encode(Image.fromarray(gradient()))
    monkeypatch.setattr(Image.Image, "convert", fail)
    for read in (read_image, read_mask):
        with pytest.raises(InvalidProblemError, match=r"x\.png: .*damaged"):
            read(content, name="x.png")


def test_a_palette_mask_goes_by_lightness_not_by_index() -> None:
    indices = np.array([[0, 1], [1, 0]], dtype=np.uint8)
    picture = Image.fromarray(indices, mode="P")
    picture.putpalette([255, 255, 255, 0, 0, 0])
    assert_array_equal(read_mask(encode(picture)), indices == 0)


def test_a_mask_drawn_by_opacity() -> None:
    values = np.zeros((4, 4, 4), dtype=np.uint8)
    values[1:3, 1:3, 3] = 255
    expected = np.zeros((4, 4), dtype=bool)
    expected[1:3, 1:3] = True
    assert_array_equal(read_mask(encode(Image.fromarray(values))), expected)


@pytest.mark.parametrize(("value", "full"), [(0, False), (1, True), (255, True), (40, False)])
def test_masks_of_one_value(value: int, full: bool) -> None:
    mask = read_mask(encode(Image.new("L", (5, 4), value)))
    assert_array_equal(mask, np.full((4, 5), full))


def test_smooth_edges_fall_on_the_nearer_side() -> None:
    row = np.array([0] * 20 + [100, 160] + [255] * 20, dtype=np.uint8)
    mask = read_mask(encode(Image.fromarray(np.tile(row, (4, 1)))))
    assert mask[0].tolist() == [False] * 21 + [True] * 21


def test_a_photograph_is_not_a_mask() -> None:
    with pytest.raises(InvalidProblemError, match=r"does not look like a mask"):
        read_mask(encode(Image.fromarray(gradient())), name="photo.png")


def test_a_mask_at_another_scale_is_resized() -> None:
    mask = np.zeros((50, 100), dtype=bool)
    mask[:25] = True
    matched = match_mask(mask, (200, 400))
    assert matched.shape == (200, 400)
    assert matched[:100].all()
    assert not matched[100:].any()


def test_a_mask_of_another_picture_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="100 x 50 pixels but its image is 80 x 80"):
        match_mask(np.zeros((50, 100), dtype=bool), (80, 80))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 2), (6, 8), (7, 9)])
def test_a_tiny_mask_fits_no_picture(shape: tuple[int, int]) -> None:
    """One pixel more or less is most of its side, so its proportions say nothing."""
    with pytest.raises(InvalidProblemError, match="draw the mask on the same picture"):
        match_mask(np.ones(shape, dtype=bool), (480, 640))


def test_a_narrow_picture_may_have_a_narrow_mask() -> None:
    assert match_mask(np.ones((5, 50), dtype=bool), (5, 51)).shape == (5, 51)
    assert match_mask(np.ones((9, 12), dtype=bool), (480, 640)).all()
