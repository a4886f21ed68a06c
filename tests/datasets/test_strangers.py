"""Files that strangers brought: read right, or refused in a sentence that says what to do.

They lie in ``strangers`` and were made by hand after public bug reports of other programs.
"""

import io
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.calibration import PRINT_RESOLUTIONS, PixelSize, micrometres_of
from engine.datasets.label_maps import read_values
from engine.datasets.masks import read_mask, understand_mask
from engine.datasets.picture_view import read_deep, read_image, read_picture
from engine.datasets.probability_maps import read_map
from tests.datasets.pictures import encode

STRANGERS = Path(__file__).parent / "strangers"
PICTURES, MASKS = STRANGERS / "pictures", STRANGERS / "masks"


# -- Pictures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        ("tiff_minisblack_3bands.tif", 3),
        ("tiff_minisblack_3bands_planar.tif", 3),
        ("tiff_minisblack_4bands.tif", 4),
    ],
)
def test_bands_are_channels(name: str, channels: int) -> None:
    stack = read_deep(PICTURES / name)
    assert stack is not None
    assert stack.planes.shape == (1, channels, 32, 32)
    assert sorted(np.unique(stack.planes)) == [0, 77, 200]


def test_magenta_of_sixteen_bits_is_magenta() -> None:
    deep = read_image(PICTURES / "tiff_cmyk16.tif")
    inks = tifffile.imread(PICTURES / "tiff_cmyk16.tif")
    plain = io.BytesIO()
    tifffile.imwrite(plain, (inks >> 8).astype(np.uint8), photometric="separated")
    assert np.abs(deep.astype(int) - read_image(plain.getvalue())).max() <= 1


def test_opacity_0_everywhere_means_opaque() -> None:
    shown = read_image(PICTURES / "bmp32_alpha0.bmp")
    assert {tuple(colour) for colour in shown.reshape(-1, 3).tolist()} == {
        (20, 180, 60),
        (200, 0, 0),
    }


@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
def test_a_picture_and_its_mask_are_turned_alike(kind: str) -> None:
    path = PICTURES / f"tiff_orientation6_{kind}.tif"
    stored = tifffile.imread(path)
    upright = np.rot90(stored, -1) > 0
    assert np.array_equal(read_image(path)[:, :, 0] > 128, upright)
    assert np.array_equal(read_mask(path), upright)
    assert np.array_equal(read_values(path) > 0, upright)


SIZES = {
    "u16_72dpi_in_cm.tif": None,
    "u8_imagej_um.tif": PixelSize(0.5, 0.5),
    "ome_not_square.ome.tif": PixelSize(0.5, 2.0),
    "ome_greek_mu.ome.tif": PixelSize(0.5, 0.5),
    "mixed_pixel_size_a.tif": PixelSize(0.5, 0.5),
    "mixed_pixel_size_b.tif": PixelSize(0.1, 0.1),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_size_of_a_pixel_is_what_the_file_states(name: str) -> None:
    assert read_picture(PICTURES / name).pixel_size == SIZES[name]


def test_planes_of_a_file_that_is_missing_are_no_black_channel() -> None:
    with pytest.raises(InvalidProblemError, match=r"1 of its 2 planes lies in other\.ome\.tif"):
        read_image(PICTURES / "ome_one_of_two_files.ome.tif")


def test_pages_with_a_palette_show_its_colours() -> None:
    path = PICTURES / "tiff_palette_pages.tif"
    with tifffile.TiffFile(path) as file:
        palette = np.asarray(file.pages[0].colormap).T >> 8
        places = file.pages[0].asarray()
    assert np.array_equal(read_image(path), palette[places])


def test_transparent_pixels_of_sixteen_bits_hide_their_colour() -> None:
    path = PICTURES / "tiff_rgba16_transparent.tif"
    samples = tifffile.imread(path)
    shown = read_image(path)
    clear = samples[:, :, 3] == 0
    assert clear.any()
    assert (shown[clear] == 255).all()
    assert clear.all()


# -- The size of a pixel, from whatever states it ----------------------------------------------


def tiff(**options: object) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, np.zeros((8, 9), np.uint8), **options)
    return stream.getvalue()


@pytest.mark.parametrize("dots", PRINT_RESOLUTIONS)
def test_resolutions_of_printers_are_not_believed(dots: int) -> None:
    in_inches = tiff(resolution=(dots, dots), resolutionunit=2)
    in_centimetres = tiff(resolution=(dots / 2.54, dots / 2.54), resolutionunit=3)
    rounded = tiff(resolution=(round(dots / 2.54), round(dots / 2.54)), resolutionunit=3)
    for content in (in_inches, in_centimetres, rounded):
        assert read_picture(content).pixel_size is None
    for form in ("PNG", "JPEG", "BMP"):
        content = encode(Image.new("L", (4, 4)), form, dpi=(dots, dots))
        assert read_picture(content).pixel_size is None


@pytest.mark.parametrize(("unit", "micrometres"), [(2, 25_400.0), (3, 10_000.0)])
def test_resolutions_of_microscopes_are_believed_in_both_units(unit, micrometres) -> None:
    content = tiff(resolution=(micrometres / 0.5, micrometres / 0.25), resolutionunit=unit)
    size = read_picture(content).pixel_size
    assert size is not None
    assert (size.x, size.y) == (pytest.approx(0.5), pytest.approx(0.25))
    turned = tiff(
        resolution=(micrometres / 0.5, micrometres / 0.25),
        resolutionunit=unit,
        extratags=[(274, "H", 1, 6, True)],
    )
    size = read_picture(turned).pixel_size
    assert size is not None
    assert (size.x, size.y) == (pytest.approx(0.25), pytest.approx(0.5))


def test_a_png_states_the_size_of_its_pixels_too() -> None:
    content = encode(Image.new("L", (4, 4)), "PNG", dpi=(50_800, 50_800))
    size = read_picture(content).pixel_size
    assert size is not None
    assert size.x == pytest.approx(0.5, rel=1e-4)


UNITS = {
    "µm": 1.0, "μm": 1.0, "um": 1.0, "micron": 1.0, "Microns": 1.0, "\\u00B5m": 1.0,
    "micrometer": 1.0, "nm": 1e-3, "mm": 1e3, "cm": 1e4, "m": 1e6, "\u212b": 1e-4, "\u00c5": 1e-4,
    "Angstrom": 1e-4, "inch": 2.54e4, "pixel": None, "furlong": None,
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_known_by_all_their_names(unit: str) -> None:
    assert micrometres_of(unit) == UNITS[unit]
    if unit.isascii() and UNITS[unit]:
        content = tiff(imagej=True, resolution=(4, 4), metadata={"unit": unit})
        size = read_picture(content).pixel_size
        assert size is not None
        assert size.x == pytest.approx(UNITS[unit] / 4)


def test_an_uncalibrated_picture_of_imagej_states_nothing() -> None:
    content = tiff(imagej=True, resolution=(4, 4), metadata={"unit": "pixel"})
    assert read_picture(content).pixel_size is None


def test_slides_of_aperio_state_their_size() -> None:
    about = "Aperio Image Library v11.2.1 |AppMag = 40|MPP = 0.2520"
    assert read_picture(tiff(description=about, software=False)).pixel_size == PixelSize(
        0.252, 0.252
    )


# -- Masks -------------------------------------------------------------------------------------

UNDERSTOOD = {
    "mask_ids_above_2_31.tif": "50 pixels, 2 objects",
    "mask_ids_1_2_70000.tif": "75 pixels, 3 objects",
    "mask_minus1_background.tif": "200 pixels, 8 objects",
    "mask_random_colours.png": None,
    "mask_inverting_lut.png": None,
}


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_a_mask_means_its_numbers(name: str) -> None:
    found = understand_mask(MASKS / name)
    if UNDERSTOOD[name]:
        assert found.sentence == UNDERSTOOD[name]
    with Image.open(MASKS / name) as picture:
        stored = np.asarray(picture)
    if name == "mask_random_colours.png":
        assert np.array_equal(found.mask, stored.any(axis=2))
        assert found.n_objects == 20
    if name == "mask_inverting_lut.png":
        assert np.array_equal(found.mask, stored == 255)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mask_0_1_255_5px.png", "areas of this one have 3: 0, 1, 255"),
        ("mask_stack.tif", "has 3 pages, but a mask belongs to one picture"),
    ],
)
def test_a_mask_that_says_too_little_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        read_mask(MASKS / name)


def objects(numbers: list[int], kind: type, side: int = 5, background: int = 0) -> np.ndarray:
    out = np.full((40, 60), background, dtype=kind)
    for place, number in enumerate(numbers):
        row, column = divmod(place, 6)
        out[2 + 8 * row : 2 + 8 * row + side, 2 + 9 * column : 2 + 9 * column + side] = number
    return out


def as_tiff(numbers: np.ndarray, **options: object) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, numbers, **options)
    return stream.getvalue()


@pytest.mark.parametrize("side", [1, 2, 5])
@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([7, 9, 4_000_000_000], np.uint32),
        ([2**40, 2**40 + 1, 5], np.int64),
        ([2**63 + 1, 3, 4], np.uint64),
        ([1, 2, 70_000], np.int32),
        ([1, 2, 70_000], np.float64),
        ([1, 2, 3, 4, 5, 6, 7], np.uint8),
        ([301, 302, 377], np.uint16),
    ],
)
def test_objects_of_any_number_and_size_are_all_marked(numbers, kind, side) -> None:
    drawn = objects(numbers, kind, side)
    found = understand_mask(as_tiff(drawn))
    assert np.array_equal(found.mask, drawn > 0)
    assert found.n_objects == len(numbers)
    if kind in (np.int64, np.uint32):
        stream = io.BytesIO()
        np.save(stream, drawn)
        assert np.array_equal(read_mask(stream.getvalue()), drawn > 0)


@pytest.mark.parametrize("side", [1, 2, 5, 7])
@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([1, 255], np.uint8),
        ([1, 2, 255], np.uint8),
        ([1, 2], np.uint8),
        ([1, 2, 255], np.uint16),
        ([1, 65_535], np.uint16),
        ([1, 2, 65_535], np.int32),
        ([128, 255], np.uint8),
        ([30_000, 60_000], np.uint16),
    ],
)
def test_ignore_values_and_few_classes_are_refused_at_any_size(numbers, kind, side) -> None:
    drawn = objects(numbers * 3, kind, side)
    for content in (as_tiff(drawn), encode(Image.fromarray(drawn)) if kind != np.int32 else b""):
        if content:
            with pytest.raises(InvalidProblemError, match="a mask has two values"):
                read_mask(content)


def test_negative_numbers_beside_two_kinds_of_background_are_refused() -> None:
    drawn = objects([1, 1, 2], np.int32)
    drawn[20:] = -1
    with pytest.raises(InvalidProblemError, match="has negative numbers beside 0, 1, 2"):
        read_mask(as_tiff(drawn))
    for fewer in ((-2, -1), (-1, 0)):
        for kind in (np.int8, np.int32, np.float32):
            drawn = np.where(objects([1, 1], np.int16) > 0, fewer[1], fewer[0]).astype(kind)
            with pytest.raises(InvalidProblemError, match="nobody can say which of them are back"):
                read_mask(as_tiff(drawn))
    two = np.where(objects([1, 1], np.int16) > 0, 3, -1).astype(np.int16)
    assert np.array_equal(read_mask(as_tiff(two)), two > 0)


@pytest.mark.parametrize("form", ["PNG", "GIF", "TIFF"])
def test_an_inverting_table_changes_no_mask(form: str) -> None:
    drawn = np.where(objects([1, 1, 1], np.uint8) > 0, 255, 0).astype(np.uint8)
    picture = Image.frombytes("P", drawn.shape[::-1], drawn.tobytes())
    picture.putpalette([level for value in range(256) for level in [255 - value] * 3])
    options = {"optimize": False} if form == "GIF" else {}
    content = encode(picture, form, **options)
    assert np.array_equal(read_mask(content), drawn > 0)


def test_colours_of_objects_on_nothing_are_all_marked() -> None:
    rng = np.random.default_rng(0)
    drawn = objects(list(range(1, 19)), np.uint8)
    colours = rng.integers(1, 256, (19, 3), dtype=np.uint8)
    colours[0] = 0
    found = understand_mask(encode(Image.fromarray(colours[drawn])))
    assert np.array_equal(found.mask, drawn > 0)
    assert found.n_objects == 18
    with pytest.raises(InvalidProblemError, match="this one has 4 colours"):
        read_mask(encode(Image.fromarray(colours[np.minimum(drawn, 3)])))
    clear = np.dstack([colours[drawn], np.where(drawn > 0, 255, 0).astype(np.uint8)])
    assert np.array_equal(read_mask(encode(Image.fromarray(clear))), drawn > 0)


def test_objects_in_several_pieces_are_not_split_by_their_numbers() -> None:
    """Numbers below the middle of their range were lost: half of all."""
    rng = np.random.default_rng(1)
    drawn = np.zeros((90, 120), dtype=np.uint8)
    for number in range(1, 61):
        for _ in range(2):
            row, column = rng.integers(0, 84), rng.integers(0, 114)
            drawn[row : row + 5, column : column + 5] = number
    for kind in (np.uint8, np.uint16):
        with pytest.raises(InvalidProblemError, match=r"two values|neither dark nor light"):
            read_mask(as_tiff(drawn.astype(kind)))


def test_smooth_edges_of_sixteen_bits_and_of_two_colours_fall_on_the_nearer_side() -> None:
    large = np.zeros((160, 240), dtype=np.uint8)
    large[30:120, 40:200] = 255
    small = np.asarray(Image.fromarray(large).resize((55, 37), Image.Resampling.BOX))
    deep = small.astype(np.uint16) * 257
    assert np.array_equal(read_mask(as_tiff(deep)), small >= 128)
    red = np.dstack([small, small // 10, np.zeros_like(small)])
    assert np.abs(read_mask(encode(Image.fromarray(red))).sum() - (small >= 128).sum()) < 20


def test_pages_that_are_all_the_same_are_one_mask() -> None:
    drawn = (objects([1, 1], np.uint8) > 0).astype(np.uint8)
    assert np.array_equal(read_mask(as_tiff(np.stack([drawn, drawn]))), drawn > 0)


@pytest.mark.parametrize("name", ["thin_labels.png", "q1.png"])
def test_labels_of_a_laboratory_are_no_mask(name: str) -> None:
    with pytest.raises(InvalidProblemError, match="a mask has two values"):
        read_mask(STRANGERS / "lab" / name)


# -- Arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_image, read_mask, read_values])
def test_an_array_whose_header_is_damaged_is_refused_in_words(read) -> None:
    with pytest.raises(InvalidProblemError, match=r"bad_header\.npy: the file is damaged"):
        read(STRANGERS / "arrays" / "bad_header.npy")


@pytest.mark.parametrize("seed", range(200))
def test_damaged_headers_of_arrays_never_escape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = io.BytesIO()
    np.save(stream, np.arange(12, dtype=np.float32).reshape(3, 4))
    content = bytearray(stream.getvalue())
    for place in rng.integers(6, 128, 3):
        content[place] = int(rng.integers(256))
    try:
        read_image(bytes(content), max_pixels=10**6)
    except InvalidProblemError:
        return


def test_a_map_never_brings_planes_of_its_neighbours(tmp_path: Path) -> None:
    """OME-TIFF may name other files: read by its path, it brought those of whoever owned them."""
    for name, value in (("secret.ome.tif", 0.75), ("x.ome.tif", 0.5)):
        tifffile.imwrite(
            tmp_path / name,
            np.full((2, 8, 9), value, np.float32),
            ome=True,
            metadata={"axes": "CYX"},
        )
    with tifffile.TiffFile(tmp_path / "secret.ome.tif") as file:
        uuid = file.ome_metadata.split('UUID="')[1].split('"')[0]
    content = (tmp_path / "x.ome.tif").read_bytes()
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        about = file.ome_metadata
    plane = '<TiffData IFD="1" FirstC="1" PlaneCount="1"><UUID FileName="secret.ome.tif">'
    named = f'<TiffData IFD="0" PlaneCount="1"/>{plane}{uuid}</UUID></TiffData>'
    start, end = about.index("<TiffData"), about.index("</Pixels>")
    tifffile.imwrite(
        tmp_path / "x.ome.tif",
        np.full((8, 9), 0.5, np.float32),
        description=about[:start] + named + about[end:],
        metadata=None,
    )
    for read in (read_map, read_image):
        with pytest.raises(InvalidProblemError, match=r"x\.ome\.tif"):
            read(tmp_path / "x.ome.tif")
