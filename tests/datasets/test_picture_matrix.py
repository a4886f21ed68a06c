"""One scene in every container: bits, samples, light, planes, orientation, pages and packing.

Every file is written here, by tifffile, Pillow or imagecodecs, from one scene whose four corners
differ. What comes out must be that scene: upright, right colours, in every combination.
"""

import io
import itertools

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageCms

from engine.core.errors import InvalidProblemError
from engine.datasets.picture_view import read_deep, read_image, read_picture

HEIGHT, WIDTH = 24, 40
CORNERS = (slice(0, 12), slice(12, 24)), (slice(0, 20), slice(20, 40))
RED, GREEN, BLUE, WHITE = (200, 40, 30), (30, 180, 60), (40, 60, 220), (250, 250, 250)
TURNS = {1: lambda a: a, 3: lambda a: a[::-1, ::-1], 6: lambda a: np.rot90(a)}
"""Scene as stored under each orientation; the orientation turns it upright."""


def scene(channels: int) -> np.ndarray:
    """Four corners, shape (rows, columns, channels), shares of light from 0 to 1."""
    colours = np.array([RED, GREEN, BLUE, WHITE]) / 255
    out = np.zeros((HEIGHT, WIDTH, channels))
    for corner, (rows, columns) in enumerate(itertools.product(*CORNERS)):
        for channel in range(channels):
            out[rows, columns, channel] = (
                colours[corner, channel] if channels == 3 else (corner * (channel + 1) % 5) / 4
            )
    return out


def stored(shares: np.ndarray, bits: int) -> np.ndarray:
    """Shares of light as numbers of a file."""
    if bits == 1:
        return shares > 0.5
    if bits == 32:
        return shares.astype(np.float32)
    return np.rint(shares * (2**bits - 1)).astype({8: np.uint8, 16: np.uint16}[bits])


def tiff(
    numbers: np.ndarray, *, orientation: int = 1, pages: int = 1, planar: bool = False, **options
) -> bytes:
    """A TIFF of (rows, columns, channels) turned as its orientation says, several pages of it."""
    turned = np.ascontiguousarray(TURNS[orientation](numbers))
    if planar:
        turned = np.ascontiguousarray(np.moveaxis(turned, 2, 0))
    elif turned.shape[2] == 1:
        turned = turned[:, :, 0]
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream) as writer:
        for page in range(pages):
            dim = turned if page == 0 else np.zeros_like(turned)
            writer.write(
                dim,
                planarconfig="separate" if planar else "contig",
                metadata=None,
                extratags=[(274, "H", 1, orientation, True)],
                contiguous=False,
                **options,
            )
    return stream.getvalue()


def shares_of(content: bytes) -> np.ndarray:
    """Return the first page as read: shares of light, (rows, columns, channels)."""
    picture = read_picture(content)
    if picture.stack is None:
        return picture.content / 255
    planes = picture.stack.planes[0]
    most = 1.0 if planes.dtype.kind == "f" else np.iinfo(planes.dtype).max
    return np.moveaxis(planes, 0, 2) / most


def check(content: bytes, expected: np.ndarray, *, off: float = 0.01) -> None:
    found = shares_of(content)
    assert found.shape[:2] == expected.shape[:2]
    if found.shape[2] > expected.shape[2]:  # grey, shown as three equal colours
        assert expected.shape[2] == 1
    assert np.abs(found - expected).max() <= off


PACKINGS = (None, "lzw", "zlib", "packbits")


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("bits", [1, 8, 16, 32])
@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5])
def test_grey_and_channels_are_one_scene(bits: int, samples: int, orientation: int) -> None:
    """Three and four channels of bytes were refused, the second of two was dropped, and deep
    pictures were not turned."""
    shares = scene(1) if samples == 1 else scene(samples) if samples != 3 else scene(4)[..., :3]
    shares = (shares > 0.5) if bits == 1 else shares
    for planar, pages, packing in itertools.product((False, True), (1, 3), PACKINGS):
        if (planar and samples == 1) or (bits == 1 and samples > 1):
            continue  # written by no program
        content = tiff(
            stored(shares, bits),
            orientation=orientation,
            pages=pages,
            planar=planar,
            compression=packing,
            photometric="minisblack",
        )
        check(content, shares.astype(float))
        stack = read_deep(content)
        if pages == 3 or samples > 1:
            assert stack is not None
            assert stack.planes.shape == (pages, samples, HEIGHT, WIDTH)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("bits", [1, 8, 16])
def test_white_is_zero_is_the_same_light(bits: int, orientation: int) -> None:
    shares = scene(1)
    numbers = stored(shares, bits)
    turned = ~numbers if bits == 1 else np.iinfo(numbers.dtype).max - numbers
    for pages, packing in itertools.product((1, 3), PACKINGS):
        content = tiff(
            turned,
            orientation=orientation,
            pages=pages,
            compression=packing,
            photometric="miniswhite",
            software="scanner",
        )
        check(content, (shares > 0.5).astype(float) if bits == 1 else shares)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("opacity", [None, "unassalpha", "assocalpha", "unspecified"])
def test_colours_are_one_scene(bits: int, opacity: str | None, orientation: int) -> None:
    shares = scene(3)
    for planar, pages, packing in itertools.product((False, True), (1, 3), (None, "lzw")):
        given, options = shares, {}
        if opacity is not None:
            clear = np.ones((HEIGHT, WIDTH, 1))
            clear[:6] = 0.0  # hidden colours of transparent pixels do not show
            given = np.dstack([shares * (clear if opacity == "assocalpha" else 1), clear])
            options["extrasamples"] = [opacity]
        content = tiff(
            stored(given, bits),
            orientation=orientation,
            pages=pages,
            planar=planar,
            compression=packing,
            photometric="rgb",
            **options,
        )
        expected = shares.copy()
        if opacity in {"unassalpha", "assocalpha"}:
            expected[:6] = 1.0
            check(content, expected)
        else:
            assert np.abs(shares_of(content)[..., :3] - shares).max() < 0.01


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("bits", [8, 16])
def test_four_inks_are_one_scene(bits: int, orientation: int) -> None:
    """Magenta of 16 bits was read as green."""
    shares = scene(3)
    black = np.full((HEIGHT, WIDTH, 1), 0.0)
    inks = np.dstack([1 - shares, black])
    for planar, pages, packing in itertools.product((False, True), (1, 3), (None, "lzw")):
        content = tiff(
            stored(inks, bits),
            orientation=orientation,
            pages=pages,
            planar=planar,
            compression=packing,
            photometric="separated",
        )
        check(content, shares)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_cielab_is_one_scene(bits: int, orientation: int) -> None:
    from skimage.color import rgb2lab

    shares = scene(3)
    lab = rgb2lab(shares)
    if bits == 32:
        numbers = lab.astype(np.float32)
    else:
        full = 2.0**bits
        scaled = np.dstack([lab[..., 0] * (full - 1) / 100, lab[..., 1:] * full / 256])
        numbers = (np.rint(scaled).astype(int) % int(full)).astype(
            {8: np.uint8, 16: np.uint16}[bits]
        )
    for pages, packing in itertools.product((1, 3), (None, "lzw")):
        content = tiff(
            numbers,
            orientation=orientation,
            pages=pages,
            compression=packing,
            photometric="cielab",
        )
        check(content, shares, off=0.03)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("pages", [1, 3])
def test_palettes_are_one_scene(pages: int, orientation: int) -> None:
    """Several pages with a palette were shown by their places in it."""
    places = np.zeros((HEIGHT, WIDTH, 1), dtype=np.uint8)
    for corner, (rows, columns) in enumerate(itertools.product(*CORNERS)):
        places[rows, columns] = 10 * corner
    palette = np.zeros((3, 256), dtype=np.uint16)
    palette[:, [0, 10, 20, 30]] = np.array([RED, GREEN, BLUE, WHITE]).T * 257
    for packing in PACKINGS:
        content = tiff(
            places,
            orientation=orientation,
            pages=pages,
            compression=packing,
            photometric="palette",
            colormap=palette,
        )
        check(content, scene(3))


def test_every_page_has_its_own_palette() -> None:
    pages = [Image.new("P", (8, 6)) for _ in range(2)]
    pages[0].putpalette([*RED, 0, 0, 0])
    pages[1].putpalette([*BLUE, 0, 0, 0])
    stream = io.BytesIO()
    pages[0].save(stream, "TIFF", save_all=True, append_images=pages[1:])
    stack = read_deep(stream.getvalue())
    assert stack is not None
    assert stack.planes[:, :, 0, 0].tolist() == [list(RED), list(BLUE)]


def by_pillow(mode: str, form: str, orientation: int, **options) -> bytes:
    picture = Image.fromarray((scene(3) * 255).round().astype(np.uint8))
    if mode == "LAB":
        profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        picture = ImageCms.profileToProfile(picture, *profiles, outputMode="LAB")
    elif mode == "P":
        picture = picture.quantize(16)
    elif mode != "RGB":
        picture = picture.convert(mode)
    turned = Image.fromarray(np.ascontiguousarray(TURNS[orientation](np.asarray(picture))), mode)
    if mode == "P":
        turned.putpalette(picture.getpalette("RGB"))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stream = io.BytesIO()
    turned.save(stream, form, exif=exif, **options)
    return stream.getvalue()


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize(
    ("form", "modes", "options"),
    [
        ("TIFF", ("RGB", "RGBA", "P", "CMYK", "LAB"), {}),
        ("TIFF", ("RGB", "RGBA", "P", "CMYK"), {"compression": "tiff_lzw"}),
        ("TIFF", ("RGB", "RGBA", "P", "CMYK"), {"compression": "tiff_adobe_deflate"}),
        ("TIFF", ("RGB",), {"compression": "jpeg", "quality": 95}),
        ("PNG", ("RGB", "RGBA", "P"), {}),
        ("WEBP", ("RGB", "RGBA"), {"lossless": True}),
        ("JPEG", ("RGB", "CMYK"), {"quality": 97, "subsampling": 0}),
    ],
)
def test_what_pillow_writes_is_one_scene(form: str, modes, options, orientation: int) -> None:
    off = 0.06 if "quality" in options else 0.03
    for mode in modes:
        check(by_pillow(mode, form, orientation, **options), scene(3), off=off)


@pytest.mark.parametrize("packing", ["group3", "group4", "tiff_ccitt"])
def test_faxes_are_one_scene(packing: str) -> None:
    shares = scene(1)[..., 0] > 0.5
    stream = io.BytesIO()
    Image.fromarray(shares).save(stream, "TIFF", compression=packing)
    check(stream.getvalue(), shares[..., np.newaxis].astype(float))


def deep_png(numbers: np.ndarray) -> bytes:
    return imagecodecs.png_encode(np.ascontiguousarray(numbers))


def test_deep_pngs_are_one_scene() -> None:
    """The opacity of sixteen bits cost the lower eight of all colours."""
    shares = scene(3)
    clear = np.ones((HEIGHT, WIDTH, 1))
    clear[:6] = 0.0
    expected = shares.copy()
    expected[:6] = 1.0
    for bits in (8, 16):
        check(deep_png(stored(shares, bits)), shares)
        check(deep_png(stored(np.dstack([shares, clear]), bits)), expected)
        grey = np.dstack([scene(1), clear])
        check(deep_png(stored(grey, bits)), np.where(clear == 0, 1.0, scene(1)))
    assert read_deep(deep_png(stored(np.dstack([shares, clear]), 16))) is not None


@pytest.mark.parametrize("codec", ["jpeg2000", "webp", "jpeg", "png"])
def test_tiles_of_other_codecs_are_one_scene(codec: str) -> None:
    numbers = np.zeros((32, 48, 3), dtype=np.uint8)
    numbers[:HEIGHT, :WIDTH] = stored(scene(3), 8)
    args = {"compressionargs": {"level": 100}} if codec in {"webp", "jpeg"} else {}
    stream = io.BytesIO()
    tifffile.imwrite(stream, numbers, tile=(16, 16), photometric="rgb", compression=codec, **args)
    found = read_image(stream.getvalue())[:HEIGHT, :WIDTH] / 255
    assert np.abs(found - scene(3)).mean() < 0.02


def test_opacity_that_nobody_wrote_hides_nothing() -> None:
    """A BMP of 32 bits whose fourth byte is 0 was all white; of other formats it is meant."""
    shares = stored(scene(3), 8)
    hidden = np.dstack([shares, np.zeros((HEIGHT, WIDTH), dtype=np.uint8)])
    for form in ("BMP", "PNG", "TIFF"):
        stream = io.BytesIO()
        Image.fromarray(hidden).save(stream, form)
        check(stream.getvalue(), scene(3) if form == "BMP" else np.ones((HEIGHT, WIDTH, 3)))


def test_frames_are_pages() -> None:
    """Two of three frames of a GIF were dropped without a word."""
    frames = [Image.new("RGB", (8, 6), colour) for colour in (RED, GREEN, BLUE)]
    for form in ("GIF", "PNG", "WEBP"):
        stream = io.BytesIO()
        options = {"lossless": True} if form == "WEBP" else {}
        frames[0].save(stream, form, save_all=True, append_images=frames[1:], **options)
        stack = read_deep(stream.getvalue())
        assert stack is not None
        assert stack.planes.shape == (3, 3, 6, 8)
        assert np.abs(stack.planes[:, :, 0, 0].astype(int) - [RED, GREEN, BLUE]).max() <= 6


def test_mosaics_of_cameras_are_refused_by_name() -> None:
    stream = io.BytesIO()
    tifffile.imwrite(stream, np.zeros((16, 16), np.uint16), photometric="cfa")
    with pytest.raises(InvalidProblemError, match="mosaic of a camera"):
        read_image(stream.getvalue())
