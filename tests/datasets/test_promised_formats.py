"""Every format that a page, a guide or a message promises is built here and read.

The lists are taken from the texts themselves: a format that a text gains without a builder fails.
"""

import io
import re
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.pictures import ANNOTATION_ENDINGS
from engine.datasets.image_names import EXTENSIONS
from engine.datasets.picture_view import read_image, read_picture
from tests.datasets.pictures import encode
from tests.datasets.test_microscope_files import MADE

ROOT = Path(__file__).resolve().parents[2]
SCENE = np.zeros((24, 40, 3), np.uint8)
SCENE[:12, :20], SCENE[12:, 20:] = (200, 30, 30), (30, 30, 200)
READERS = {"CZI": "czifile", "LIF": "liffile", "ND2": "nd2"}


def array_file() -> bytes:
    stream = io.BytesIO()
    np.save(stream, SCENE)
    return stream.getvalue()


def tiff(packing: str | None = None, *, colour: bool = True) -> bytes:
    stream = io.BytesIO()
    light = "rgb" if colour else "minisblack"
    numbers = SCENE if colour else SCENE[:, :, 0]
    tifffile.imwrite(stream, numbers, compression=packing, photometric=light, metadata=None)
    return stream.getvalue()


def drawn(form: str, **options: object) -> bytes:
    return encode(Image.fromarray(SCENE), form, **options)


FORMATS = {
    "JPEG": lambda: drawn("JPEG", quality=100, subsampling=0),
    "JPEG 2000": lambda: imagecodecs.jpeg2k_encode(SCENE, level=0, reversible=True),
    "PNG": lambda: drawn("PNG"),
    "WebP": lambda: drawn("WEBP", lossless=True),
    "AVIF": lambda: drawn("AVIF", quality=100),
    "BMP": lambda: drawn("BMP"),
    "TIFF": tiff,
    "GIF": lambda: drawn("GIF"),
    "PNM": lambda: drawn("PPM"),
    "NPY": array_file,
}
PACKINGS = {
    "LZW": "lzw", "ZIP": "adobe_deflate", "PackBits": "packbits", "JPEG": "jpeg",
    "JPEG 2000": "jpeg2000", "WebP": "webp", "Zstandard": "zstd", "LZMA": "lzma",
}  # fmt: skip


def text(path: str) -> str:
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def words(path: str, pattern: str) -> list[str]:
    """Return the words of the list that a text has between two phrases."""
    found = re.search(pattern, text(path))
    assert found, f"{path} has no list {pattern}"
    listed = re.sub(r"\([^)]*\)", "", found[1])
    return [word.strip() for word in re.split(r", | or | and ", listed) if word.strip()]


def refusal() -> str:
    with pytest.raises(InvalidProblemError) as refused:
        read_image(b"not a picture at all")
    return str(refused.value)


LISTS = {
    "upload": words("templates/segmentation/image_set.html", r"trimmed %\} (JPEG.*?) up to \{\{"),
    "guide": words("docs/guides/pictures-to-counts.md", r"\| (JPEG[^|]*) \| a picture"),
    "message": re.findall(r"JPEG 2000|[A-Z]\w+", refusal().partition("(")[2]),
}


@pytest.mark.parametrize("listed", LISTS)
def test_every_format_of_the_list_is_read(listed: str) -> None:
    assert len(LISTS[listed]) >= 7
    for name in LISTS[listed]:
        if name == "HEIC":
            pytest.importorskip("pi_heif", reason="HEIC is an extra")
            assert read_image(Path(__file__).parent / "data/plain.heic").ndim == 3
        elif name in READERS:
            pytest.importorskip(READERS[name], reason=f"{name} is an extra")
            assert read_picture(MADE[READERS[name]](), name="a").stack is not None
        else:
            off = np.abs(read_image(FORMATS[name]()).astype(int) - SCENE)
            assert np.median(off) <= 2, name
            assert off.mean() <= 4, name


def test_every_packing_of_a_tiff_that_the_table_names_is_read() -> None:
    names = words("docs/segmentation.md", r"packed by (LZW.*?) or as a fax")
    assert len(names) == len(PACKINGS)
    for name in names:
        off = np.abs(read_image(tiff(PACKINGS[name])).astype(int) - SCENE)
        assert np.median(off) <= 2, name
    for packing in ("group3", "group4"):
        fax = encode(Image.fromarray(SCENE[:, :, 0] > 100), "TIFF", compression=packing)
        assert np.array_equal(read_image(fax)[:, :, 0] > 100, SCENE[:, :, 0] > 100)


DEPTHS = [
    *(("u", bits) for bits in (*range(1, 17), 24, 32, 64)),
    *(("i", bits) for bits in (8, 16, 32, 64)),
    *(("f", bits) for bits in (16, 32, 64)),
]


@pytest.mark.parametrize(("kind", "bits"), DEPTHS)
def test_every_depth_of_a_tiff_that_the_table_names_is_read(kind: str, bits: int) -> None:
    shares = SCENE[:, :, 0] / 200
    if kind == "f":
        numbers = shares.astype(f"f{bits // 8}")
    else:
        top = 2 ** min(bits - (kind == "i"), 53) - 1
        wide = next(one for one in (8, 16, 32, 64) if one >= bits)
        numbers = np.rint(shares * top).astype(f"{kind}{wide // 8}")
    stream = io.BytesIO()
    packed = {} if numbers.dtype.itemsize * 8 == bits else {"bitspersample": bits}
    tifffile.imwrite(stream, numbers, photometric="minisblack", metadata=None, **packed)
    shown = read_image(stream.getvalue())[:, :, 0].astype(float)
    expected = np.rint(shares * (2**bits - 1)) / (2**bits - 1) if bits < 8 else shares
    assert np.abs(shown / shown.max() - expected).max() < 0.02


def test_the_page_offers_only_files_that_are_read() -> None:
    (offered,) = re.findall(
        r'accept="(image/[^"]*)"', text("templates/segmentation/image_set.html")
    )
    endings = {ending for ending in offered.split(",") if ending.startswith(".")}
    assert endings <= EXTENSIONS | ANNOTATION_ENDINGS | {".zip", ".npy"}
    assert endings >= ANNOTATION_ENDINGS  # a browser hides files of other endings
