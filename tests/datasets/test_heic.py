"""HEIC as phones write it, read as any other picture.

The files in ``data`` are ours: a red, green, blue and light quarter, written by libheif and x265.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets.foreign_files import HEIC, unsupported_kind
from engine.datasets.image_folder import list_images
from engine.datasets.picture_view import read_image

DATA = Path(__file__).parent / "data"
RED, GREEN, BLUE, LIGHT, WHITE = (
    (200, 30, 30), (30, 200, 30), (30, 30, 200), (220, 220, 220), (255, 255, 255),
)  # fmt: skip


def corners(pixels: np.ndarray) -> list[np.ndarray]:
    """Upper left and right, lower left and right."""
    return [pixels[5, 5], pixels[5, -5], pixels[-5, 5], pixels[-5, -5]]


@pytest.mark.parametrize(
    ("name", "shape", "colours"),
    [
        ("plain", (48, 64), (RED, GREEN, BLUE, LIGHT)),
        ("ten", (48, 64), (RED, GREEN, BLUE, LIGHT)),  # bits a colour
        ("turned", (64, 48), (BLUE, RED, LIGHT, GREEN)),  # held upright
        ("alpha", (48, 64), (RED, WHITE, BLUE, WHITE)),  # the right half is transparent
        ("grid", (1152, 1536), (RED, GREEN, BLUE, LIGHT)),  # in tiles of 512
    ],
)
def test_it_is_read_upright_with_its_colours(name: str, shape: tuple, colours: tuple) -> None:
    pixels = read_image(DATA / f"{name}.heic")
    assert pixels.shape == (*shape, 3)
    for found, colour in zip(corners(pixels), colours, strict=True):
        assert np.abs(found.astype(int) - colour).max() <= 3


def test_a_folder_lists_it() -> None:
    assert len(list_images(DATA)) == 5


@pytest.mark.parametrize("kept", [30, 200, 690])
def test_a_file_that_was_cut_off_is_refused(kept: int) -> None:
    content = (DATA / "plain.heic").read_bytes()[:kept]
    with pytest.raises(InvalidProblemError, match=r"phone\.heic: the file is damaged or cut off"):
        read_image(content, name="phone.heic")


def test_damaged_bytes_never_escape_as_another_error() -> None:
    rng = np.random.default_rng(0)
    whole = (DATA / "plain.heic").read_bytes()
    refused = []
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(0, 420, 3):  # in the boxes that say what follows
            content[place] = rng.integers(256)
        try:
            read_image(bytes(content), name="phone.heic")
        except InvalidProblemError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all(sentence.startswith("phone.heic: ") for sentence in refused)


def test_a_picture_that_is_too_large_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(InvalidProblemError, match="1536 x 1152 pixels is too large"):
        read_image(DATA / "grid.heic", max_pixels=10**6)


def test_without_its_package_it_is_refused_with_what_to_save_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pi_heif.heif", None)
    with pytest.raises(InvalidProblemError, match=r"pi-heif-decoder .*; save it as JPEG"):
        read_image(DATA / "plain.heic")


def test_avif_of_the_common_brand_is_left_to_its_own_decoder() -> None:
    head = (DATA / "plain.heic").read_bytes()[:64]
    assert unsupported_kind(head) == HEIC
    assert unsupported_kind(b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf" + bytes(36)) == ""
    assert unsupported_kind(b"\0\0\0\x1cftypmif1\0\0\0\0mif1heicmiaf" + bytes(36)) == HEIC
