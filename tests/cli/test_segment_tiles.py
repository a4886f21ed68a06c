"""Pictures beyond memory on the command line: read, predicted and written in parts."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from engine.cli.main import main
from engine.core.errors import InvalidProblemError
from engine.datasets import large_pictures
from engine.datasets.large_pictures import LargeTiff, is_large
from engine.learning.segmentation import class_learning
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.model import N_PARAMETERS, Detail, make_segmentation_model
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures

RNG = np.random.default_rng(0)


def run(capsys, *words: str):  # type: ignore[no-untyped-def]
    code = main(["segment", *words, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out.splitlines()[-1]) if code == 0 else captured.err


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of more than a thousand pixels count as large."""
    monkeypatch.setattr(large_pictures, "MAX_PIXELS", 1000)


@pytest.mark.parametrize(
    "options",
    [
        {"tile": (64, 48), "compression": "zlib"},
        {"tile": (64, 48), "compression": "zlib", "predictor": 2},
        {"rowsperstrip": 17},
        {"tile": (32, 32), "bigtiff": True},
    ],
)
def test_every_rectangle_is_the_pictures_own(tmp_path: Path, options) -> None:  # type: ignore[no-untyped-def]
    image = RNG.integers(0, 256, (150, 111, 3), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="rgb", **options)
    with LargeTiff(tmp_path / "a.tif") as source:
        assert source.shape == (150, 111)
        for top, left, rows, columns in ((0, 0, 150, 111), (13, 5, 80, 70), (149, 110, 1, 1)):
            found = source.read(top, left, rows, columns)
            assert np.array_equal(found, image[top : top + rows, left : left + columns])


def test_grey_and_deep_pictures_are_shown_as_others_are(tmp_path: Path) -> None:
    grey = RNG.integers(0, 256, (90, 70), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "g.tif", grey, tile=(32, 32))
    with LargeTiff(tmp_path / "g.tif") as source:
        assert np.array_equal(source.read(0, 0, 90, 70)[:, :, 1], grey)
    deep = RNG.integers(100, 4000, (90, 70), dtype=np.uint16)
    tifffile.imwrite(tmp_path / "d.tif", deep, tile=(32, 32))
    with LargeTiff(tmp_path / "d.tif") as source:
        shown = source.read(0, 0, 90, 70)[:, :, 0].astype(int)
    expected = np.clip((deep - 100.0) * 255 / 3900, 0, 255)
    assert np.abs(shown - expected).max() < 3


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros((40, 40), np.float32), {}, "1 channel of 32 bits"),
        (np.zeros((3, 40, 40), np.uint8), {"planarconfig": "separate"}, "interleaved"),
        (np.zeros((2, 40, 40), np.uint8), {"photometric": "minisblack"}, "several pages"),
    ],
)
def test_what_cannot_be_read_in_parts_is_refused_by_its_reason(
    tmp_path: Path,
    array: np.ndarray,
    options,
    message: str,  # type: ignore[no-untyped-def]
) -> None:
    if options.get("planarconfig"):
        options = options | {"photometric": "rgb"}
    tifffile.imwrite(tmp_path / "a.tif", array, **options)
    with pytest.raises(InvalidProblemError, match=message):
        LargeTiff(tmp_path / "a.tif")


def test_a_picture_of_too_many_pixels_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert large_pictures.MOST_PIXELS == 4_000_000_000
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((40, 50), np.uint8), rowsperstrip=4)
    for most, is_refused in ((2000, False), (1999, True)):
        monkeypatch.setattr(large_pictures, "MOST_PIXELS", most)
        if is_refused:
            with pytest.raises(InvalidProblemError, match="50 x 40 pixels; at most"):
                LargeTiff(tmp_path / "a.tif")
        else:
            LargeTiff(tmp_path / "a.tif").close()


def test_damage_and_single_strips_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tif"
    image = RNG.integers(0, 256, (100, 100, 3), dtype=np.uint8)
    tifffile.imwrite(path, image, photometric="rgb", tile=(64, 64), compression="zlib")
    content = path.read_bytes()
    with LargeTiff(path) as source:
        offset = source._page.dataoffsets[3]
    path.write_bytes(content[: offset + 20] + b"\xff" * (len(content) - offset - 20))
    with LargeTiff(path) as source, pytest.raises(InvalidProblemError, match="damaged or cut off"):
        source.read(64, 64, 30, 30)
    (tmp_path / "b.tif").write_bytes(b"II*\x00nonsense")
    with pytest.raises(InvalidProblemError, match="no TIFF"):
        LargeTiff(tmp_path / "b.tif")
    monkeypatch.setattr(large_pictures, "LARGEST_PIECE", 10_000)
    tifffile.imwrite(path, image, photometric="rgb", rowsperstrip=100)
    with pytest.raises(InvalidProblemError, match="one strip"):
        LargeTiff(path)


def test_a_file_whose_size_was_never_written_is_called_damaged(tmp_path: Path) -> None:
    """As of a program that was stopped: it asked for "1 to 4 gigapixels"."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((8, 8), np.uint8))
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages[0].tags["ImageLength"].overwrite(0)
    with pytest.raises(InvalidProblemError, match=r"a\.tif: the file is damaged"):
        LargeTiff(path)


@pytest.mark.usefixtures("large")
def test_a_large_picture_is_segmented_like_a_small_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theta = np.random.default_rng(1).normal(0, 0.2, N_PARAMETERS)
    make_segmentation_model(theta, ridge=1.0, rho=0.5, detail=Detail(40)).save(tmp_path / "m.npz")
    image = class_pictures(1, side=90)[0][0]
    (tmp_path / "in").mkdir()
    tifffile.imwrite(tmp_path / "in" / "a.tif", image, photometric="rgb", tile=(32, 32))
    words = ("--images", str(tmp_path / "in"), "--model", str(tmp_path / "m.npz"))
    assert is_large(tmp_path / "in" / "a.tif")
    code, result = run(capsys, "predict", *words, "--out", str(tmp_path / "tiled"))
    assert code == 0
    assert result["images"][0]["tiles"] == 1
    monkeypatch.setattr(large_pictures, "MAX_PIXELS", 10**9)
    run(capsys, "predict", *words, "--out", str(tmp_path / "whole"))
    parts = [np.load(tmp_path / kind / "a.marginals.npy") for kind in ("tiled", "whole")]
    assert np.abs(parts[0] - parts[1]).max() < 1e-5
    masks = [np.asarray(Image.open(tmp_path / k / "a.mask.png")) for k in ("tiled", "whole")]
    assert np.array_equal(*masks)
    monkeypatch.setattr(large_pictures, "MAX_PIXELS", 1000)
    code, error = run(
        capsys, "predict", *words, "--readout", "map", "--out", str(tmp_path / "other")
    )
    assert code == 2
    assert "needs the whole picture at once" in error


def test_classes_in_tiles_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_learning, "EDGE_LABELS", 10_000)
    images, labels = class_pictures(4)
    options = {"detail": Detail(scale=1.0), "loss": "trees", "values": (10, 20, 30)}
    train_class_segmentation(images, labels, CLASSES, **options).model.save(tmp_path / "m.npz")  # type: ignore[arg-type]
    (tmp_path / "in").mkdir()
    Image.fromarray(class_pictures(1, side=60, seed=5)[0][0]).save(tmp_path / "in" / "p.png")
    words = ("--images", str(tmp_path / "in"), "--model", str(tmp_path / "m.npz"))
    found = {}
    for kind, more in (("tiled", ("--tiles",)), ("whole", ())):
        out = str(tmp_path / kind)
        code, result = run(capsys, "predict", *words, *more, "--threshold", "0.6", "--out", out)
        assert code == 0
        found[kind] = np.asarray(Image.open(tmp_path / kind / "p.labels.png")).copy(), result
    assert np.array_equal(found["tiled"][0], found["whole"][0])
    assert set(np.unique(found["tiled"][0])) <= {10, 20, 30, 255}
    first, second = (found[kind][1]["images"][0]["shares"] for kind in ("tiled", "whole"))
    assert first == pytest.approx(second)
