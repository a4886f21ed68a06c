"""Masks as people really draw them."""

import io
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.testing import assert_array_equal
from PIL import Image, ImageDraw, ImageFilter

from engine.core.errors import InvalidProblemError
from engine.datasets.masks import mask_fits, match_mask, read_mask, write_mask
from tests.datasets.pictures import encode, gradient, in_mode


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


@pytest.mark.parametrize(("value", "full"), [(0, False), (1, True), (255, True)])
def test_masks_of_one_value(value: int, full: bool) -> None:
    mask = read_mask(encode(Image.new("L", (5, 4), value)))
    assert_array_equal(mask, np.full((4, 5), full))


def test_a_mask_of_one_other_value_is_refused() -> None:
    """A crop inside the object with the number 40 was read as empty."""
    with pytest.raises(InvalidProblemError, match=r"every pixel has the number 40"):
        read_mask(encode(Image.new("L", (5, 4), 40)))


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


def ellipse(width: int = 320, height: int = 240) -> Image.Image:
    picture = Image.new("L", (width, height))
    box = (width // 5, height // 6, width * 3 // 4, height * 4 // 5)
    ImageDraw.Draw(picture).ellipse(box, fill=255)
    return picture


@pytest.mark.parametrize("labels", [(0, 1, 255), (0, 128, 255), (0, 1, 2, 3), (0, 75, 38, 220)])
def test_a_map_of_labels_is_no_mask(labels: tuple[int, ...]) -> None:
    """Half the range used to be the border: whole classes were lost without a word."""
    values = np.zeros((60, 90), dtype=np.uint8)
    for number, label in enumerate(labels[1:]):
        values[10 : 22 + 12 * number, 10 + 20 * number : 25 + 20 * number] = label
    with pytest.raises(InvalidProblemError, match=rf"x\.png: .* have {len(labels)}: "):
        read_mask(encode(Image.fromarray(values)), name="x.png")


@pytest.mark.parametrize("shrunk", [2, 4, 8])
def test_smooth_edges_are_no_third_value(shrunk: int) -> None:
    large = ellipse()
    smooth = large.resize((320 // shrunk, 240 // shrunk), Image.Resampling.BOX)
    assert len(np.unique(np.asarray(smooth))) > 2
    assert_array_equal(read_mask(encode(smooth)), np.asarray(smooth) >= 128)


@pytest.mark.parametrize("quality", [10, 20, 40, 75, 95])
def test_what_a_lossy_format_adds_is_no_third_value(quality: int) -> None:
    """Grey levels near black and white fill whole blocks of a JPEG."""
    square = Image.new("L", (320, 240))
    ImageDraw.Draw(square).rectangle((65, 64, 159, 127), fill=255)
    for truth in (ellipse(), square):
        content = encode(truth, "JPEG", quality=quality)
        kept = encode(Image.open(io.BytesIO(content)))
        for copy in (content, kept):
            assert np.mean(read_mask(copy) != (np.asarray(truth) > 0)) < 0.01


def test_what_fits_is_what_can_be_matched() -> None:
    for mask_shape in ((480, 640), (240, 320), (241, 320), (250, 320), (6, 8), (9, 12), (480, 600)):
        fits = mask_fits(mask_shape, (480, 640))
        assert fits == (mask_shape in {(480, 640), (240, 320), (241, 320), (9, 12)})
        if fits:
            assert match_mask(np.ones(mask_shape, dtype=bool), (480, 640)).all()


def discs(count: int = 6, kind: type = np.uint16, step: int = 1) -> np.ndarray:
    """A map of instances: squares with the numbers 1, 1 + step, ... on 0, some touching."""
    numbers = np.zeros((40, 60), dtype=kind)
    for k in range(count):
        row, column = divmod(k, 3)
        numbers[2 + 15 * row : 12 + 15 * row, 2 + 10 * column : 12 + 10 * column] = 1 + step * k
    return numbers


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("step", [1, 3])
def test_a_map_of_instances_marks_all_objects(kind: type, step: int) -> None:
    """Split at half their range, half of the objects were lost, or the map was refused."""
    numbers = discs(kind=kind, step=step)
    assert_array_equal(read_mask(encode(Image.fromarray(numbers), "TIFF")), numbers > 0)


def test_objects_cut_from_a_larger_map_keep_their_numbers() -> None:
    """Numbers from 4,000 on were called areas of a mask, of which it has two."""
    numbers = discs()
    numbers[numbers > 0] += 4_000
    assert_array_equal(read_mask(encode(Image.fromarray(numbers), "TIFF")), numbers > 0)
    scaled = discs(count=2) * np.uint16(30_000)
    with pytest.raises(InvalidProblemError, match="a mask has two values"):
        read_mask(encode(Image.fromarray(scaled), "TIFF"))


def test_a_map_of_classes_in_many_pieces_is_still_refused() -> None:
    numbers = discs(kind=np.uint8)
    numbers[numbers > 0] = 1 + (numbers[numbers > 0] % 3)
    numbers[30:38, 40:58] = 4
    with pytest.raises(InvalidProblemError, match="a mask has two values"):
        read_mask(encode(Image.fromarray(numbers * 60)))


def tiff(numbers: np.ndarray, **options: object) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, numbers, **options)
    return stream.getvalue()


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float32, np.float64])
def test_numbers_of_objects_may_have_any_kind(kind: type) -> None:
    """Labels of scripts have 64 bits, those of ImageJ's plugins are floats: both were refused."""
    numbers = discs(count=4).astype(kind)
    assert_array_equal(read_mask(tiff(numbers)), numbers > 0)
    assert_array_equal(read_mask(tiff((numbers > 0).astype(kind))), numbers > 0)


def test_an_array_with_one_channel_last_is_a_mask() -> None:
    truth = discs() > 0
    for kind in (np.uint8, np.uint16, np.bool_):
        assert_array_equal(read_mask(tiff(truth.astype(kind)[:, :, np.newaxis])), truth)


def test_probabilities_of_64_bits_are_split_at_half() -> None:
    values = np.tile(np.linspace(0, 1, 50) ** 9, (20, 1))
    values[:, -6:] = 1.0
    assert_array_equal(read_mask(tiff(values)), values >= 0.5)


def test_a_mask_of_yes_and_no_that_tifffile_wrote_is_not_turned_over() -> None:
    """It notes that 0 is white, and reads it back as it was: so did nobody else."""
    truth = discs() > 0
    assert_array_equal(read_mask(tiff(truth)), truth)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_objects_of_imagej_are_255_however_they_are_shown(kind: type) -> None:
    """Made while "Black background" is off, a mask is shown black on white."""
    numbers = np.where(discs() > 0, np.iinfo(kind).max, 0).astype(kind)
    content = tiff(numbers, photometric="miniswhite", description="ImageJ=1.54f\n", software=False)
    assert_array_equal(read_mask(content), numbers > 0)
    of_a_scanner = tiff(numbers, photometric="miniswhite", software="Scan")
    if kind is np.uint8:
        assert_array_equal(read_mask(of_a_scanner), numbers == 0)


def test_small_areas_of_small_numbers_are_labels_too() -> None:
    """Spots of two kinds, six pixels across, were taken for smooth edges and became one kind."""
    values = np.zeros((40, 60), dtype=np.uint8)
    for k in range(6):
        values[4 : 9 - k % 2, 4 + 9 * k : 9 + 9 * k - k % 2] = 1 + k % 2
    with pytest.raises(InvalidProblemError, match="areas of this one have 3"):
        read_mask(encode(Image.fromarray(values)))


@pytest.mark.parametrize("values", [(0, 127, 254), (0, 85, 170, 255)])
def test_a_map_of_labels_in_a_lossy_file_is_no_mask(values: tuple[int, ...]) -> None:
    """The middle class, a tenth of the picture, went to whichever side was nearer."""
    picture = np.zeros((120, 160), dtype=np.uint8)
    for number, value in enumerate(values[1:]):
        picture[20:60, 10 + 45 * number : 45 + 45 * number] = value
    for quality in (60, 90):
        content = encode(Image.fromarray(picture), "JPEG", quality=quality)
        with pytest.raises(InvalidProblemError, match=r"x\.jpg: .*(two values|neither dark)"):
            read_mask(content, name="x.jpg")


@pytest.mark.parametrize("quality", [50, 75, 90, 100])
def test_small_labels_beside_white_in_a_lossy_file_are_no_mask(quality: int) -> None:
    """Labels 0, 1, 2 and 255 for unknown became a mask on which only 255 was marked."""
    picture = np.zeros((120, 160), dtype=np.uint8)
    picture[20:60, 10:60], picture[20:60, 70:110], picture[112:] = 1, 2, 255
    content = encode(Image.fromarray(picture), "JPEG", quality=quality)
    with pytest.raises(InvalidProblemError, match=r"x\.jpg: .*two values.*PNG or TIFF"):
        read_mask(content, name="x.jpg")


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize("quality", [10, 50, 90])
def test_a_blurred_mask_in_a_lossy_file_is_a_mask(radius: int, quality: int) -> None:
    blurred = ellipse().convert("L").filter(ImageFilter.GaussianBlur(radius))
    mask = read_mask(encode(blurred, "JPEG", quality=quality))
    assert np.mean(mask != (np.asarray(blurred) >= 128)) < 0.01


def test_small_numbers_in_a_lossy_file_are_lost() -> None:
    """They were split in their middle, which cut through classes."""
    content = encode(Image.fromarray(discs(count=4, kind=np.uint8)), "JPEG", quality=90)
    with pytest.raises(InvalidProblemError, match=r"x\.jpg: .*changes.*PNG or TIFF"):
        read_mask(content, name="x.jpg")


def test_only_negative_numbers_are_refused_in_a_whole_sentence() -> None:
    """The sentence said "negative numbers beside , and nobody"."""
    values = (-1 - np.arange(64).reshape(8, 8) // 22).astype(np.int16)
    stream = io.BytesIO()
    tifffile.imwrite(stream, values)
    with pytest.raises(InvalidProblemError, match="negative numbers beside no others"):
        read_mask(stream.getvalue(), name="a.tif")
