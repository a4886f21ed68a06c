"""``segment objects``: from predictions to counts, tables and files of other programs."""

import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage.draw import disk
from skimage.measure import label

from engine.cli.main import main
from engine.datasets.object_edges import edges_of


def write_predictions(folder: Path) -> None:
    """Two images: one of two touching discs, a speck and a disc at the border; one empty."""
    (folder / "images").mkdir()
    (folder / "predicted").mkdir()
    for name in ("a", "b"):
        picture = np.random.default_rng(0).integers(0, 255, (60, 90, 3)).astype(np.uint8)
        Image.fromarray(picture).save(folder / "images" / f"{name}.png")
        mask = np.zeros((60, 90), dtype=bool)
        if name == "a":
            for centre in ((30, 30), (30, 49), (0, 80)):
                mask[disk(centre, 10, shape=mask.shape)] = True
            mask[55, 5] = True
        Image.fromarray(255 * mask.astype(np.uint8)).save(folder / "predicted" / f"{name}.mask.png")
        np.save(folder / "predicted" / f"{name}.marginals.npy", mask.astype(np.float32))


def answer(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict:
    words = ["segment", "objects", "--images", str(folder / "images"), "--json"]
    words += ["--predictions", str(folder / "predicted"), "--out", str(folder / "out"), *options]
    assert main(words) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_objects_are_separated_counted_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_predictions(tmp_path)
    formats = [
        word for kind in ("imagej", "geojson", "cellpose", "coco") for word in ("--format", kind)
    ]
    found = answer(tmp_path, capsys, *formats)
    assert [row["objects"] for row in found["images"]] == [3, 0]
    numbers = tifffile.imread(tmp_path / "out" / "a.objects.tif")
    assert numbers.dtype == np.uint16
    assert set(np.unique(numbers)) == {0, 1, 2, 3}
    assert numbers[30, 30] != numbers[30, 49]
    table = list(csv.DictReader((tmp_path / "out" / "objects.csv").open()))
    assert [int(row["number"]) for row in table] == [1, 2, 3]
    assert float(table[0]["area"]) == (numbers == 1).sum()
    assert 0 < float(table[0]["solidity"]) <= 1
    coco = json.loads((tmp_path / "out" / "objects.coco.json").read_text())
    assert [one["area"] for one in coco["annotations"]] == [float(row["area"]) for row in table]
    assert "info" in coco
    assert len(zipfile.ZipFile(tmp_path / "out" / "a.rois.zip").namelist()) == 3
    assert len(json.loads((tmp_path / "out" / "a.geojson").read_text())["features"]) == 3
    assert (tmp_path / "out" / "a_seg.npy").exists()


def test_options_change_what_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_predictions(tmp_path)
    assert answer(tmp_path, capsys, "--splits", "-1")["n_objects"] == 2
    assert answer(tmp_path, capsys, "--drop-border")["n_objects"] == 2
    assert answer(tmp_path, capsys, "--min-pixels", "1")["n_objects"] == 4
    assert answer(tmp_path, capsys, "--max-pixels", "200")["n_objects"] == 1
    (tmp_path / "known").mkdir()
    known = np.kron(np.arange(9).reshape(3, 3), np.ones((20, 20))).astype(np.uint16)
    tifffile.imwrite(tmp_path / "known" / "k.tif", known)
    assert answer(tmp_path, capsys, "--known", str(tmp_path / "known"))["n_objects"] == 3


def test_the_background_of_a_label_map_is_no_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every class was counted, the background too."""
    write_predictions(tmp_path)
    for name in ("a", "b"):
        (tmp_path / "predicted" / f"{name}.mask.png").unlink()
        labels = np.full((60, 90), 2, dtype=np.uint8)
        labels[5:15, 5:15], labels[30:40, 30:40] = 1, 3
        Image.fromarray(labels).save(tmp_path / "predicted" / f"{name}.labels.png")
    assert answer(tmp_path, capsys, "--background", "2")["n_objects"] == 4
    assert answer(tmp_path, capsys, "--background", "1", "--splits", "-1")["n_objects"] == 4


def test_bad_input_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_predictions(tmp_path)
    for path in (tmp_path / "predicted").iterdir():
        path.unlink()
    words = ["segment", "objects", "--images", str(tmp_path / "images")]
    words += ["--predictions", str(tmp_path / "predicted"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "Predict it first" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([*words, "--known", str(tmp_path / "empty")]) == 2
    assert "at least 5 numbered objects" in capsys.readouterr().err


def write_numbered(folder: Path, count: int = 4) -> None:
    """Pictures of touching squares, darker at their edges, with masks that number them."""
    (folder / "images").mkdir()
    (folder / "masks").mkdir()
    for k in range(count):
        rng = np.random.default_rng(k)
        numbers = np.zeros((60, 90), dtype=np.uint8)
        numbers[10:50, 10:80] = np.kron(np.arange(1, 29).reshape(4, 7), np.ones((10, 10)))
        numbers[rng.integers(0, 2, 29)[numbers] == 0] = 0
        shades = np.array([30, 200, 110])[edges_of(numbers)]
        picture = np.clip(shades + rng.normal(0, 8, shades.shape), 0, 255).astype(np.uint8)
        Image.fromarray(picture).save(folder / "images" / f"p{k}.png")
        Image.fromarray(numbers).save(folder / "masks" / f"p{k}_instances.png")


def test_learned_edges_separate_objects_that_touch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_numbered(tmp_path, count=2)
    where = ["--images", str(tmp_path / "images")]
    masks, model = ["--masks", str(tmp_path / "masks")], str(tmp_path / "m.npz")
    words = ["segment", "train", *where, *masks, "--edges", "--scale", "1", "--out", model]
    assert main([*words, "--no-position", "--json"]) == 0
    learned = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert learned["labels"] == "objects and their edges"
    assert set(learned["known_pixels"]) == {"Background", "Object", "Edge"}
    predicted = str(tmp_path / "predicted")
    assert main(["segment", "predict", "--model", model, *where, "--out", predicted]) == 0
    assert main(["segment", "evaluate", "--model", model, *where, *masks, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"] < 0.1
    expected = [
        len(np.unique(np.asarray(Image.open(path)))) - 1
        for path in sorted((tmp_path / "masks").iterdir())
    ]
    found = answer(tmp_path, capsys, "--edge", "2")
    assert [row["objects"] for row in found["images"]] == expected


def test_an_edge_that_is_no_class_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_predictions(tmp_path)
    words = ["segment", "objects", "--images", str(tmp_path / "images"), "--edge", "7"]
    words += ["--predictions", str(tmp_path / "predicted"), "--out", str(tmp_path / "out")]
    assert main(words) != 0
    assert "--edge belongs to label maps" in capsys.readouterr().err
    for name in ("a", "b"):
        (tmp_path / "predicted" / f"{name}.mask.png").unlink()
        labels = np.zeros((60, 90), dtype=np.uint8)
        labels[:20] = 1
        Image.fromarray(labels).save(tmp_path / "predicted" / f"{name}.labels.png")
    assert main(words) != 0
    assert "--edge needs its probabilities" in capsys.readouterr().err
    for name in ("a", "b"):
        planes = np.full((60, 90, 3), 1 / 3, dtype=np.float32)
        np.save(tmp_path / "predicted" / f"{name}.probabilities.npy", planes)
    assert main(words) != 0
    assert "--edge 7 is no class" in capsys.readouterr().err


def test_parts_of_masks_without_numbers_have_edges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_predictions(tmp_path)
    words = ["segment", "train", "--images", str(tmp_path / "images"), "--edges", "--json"]
    words += ["--masks", str(tmp_path / "predicted"), "--out", str(tmp_path / "m.npz")]
    assert main(words) == 0
    known = json.loads(capsys.readouterr().out.splitlines()[-1])["known_pixels"]
    files = sorted((tmp_path / "predicted").glob("*.mask.png"))
    masks = [np.asarray(Image.open(path)) > 0 for path in files]
    edges = [edges_of(label(mask, connectivity=2)) == 2 for mask in masks]
    assert known["Edge"] == sum(int(one.sum()) for one in edges)
    assert known["Object"] == sum(int(one.sum()) for one in masks) - known["Edge"]


def test_edges_are_not_learned_from_outlines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_numbered(tmp_path, count=1)
    shape = {"label": "cell", "points": [[5, 5], [30, 5], [30, 30]], "shape_type": "polygon"}
    outlines = {"version": "5.0", "shapes": [shape], "imagePath": "p0.png"}
    (tmp_path / "images" / "p0.json").write_text(json.dumps(outlines), encoding="utf-8")
    words = ["segment", "train", "--images", str(tmp_path / "images"), "--edges"]
    assert main([*words, "--out", str(tmp_path / "m.npz")]) == 2
    assert "--edges learns from masks" in capsys.readouterr().err
    assert not (tmp_path / "m.npz").exists()


def test_label_maps_have_no_edges_of_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_numbered(tmp_path, count=2)
    for path in (tmp_path / "masks").iterdir():
        path.unlink()
        classes = np.random.default_rng(0).integers(0, 3, (60, 90), dtype=np.uint8)
        Image.fromarray(classes).save(path.with_name(path.name.replace("_instances", ".mask")))
    words = ["segment", "train", "--images", str(tmp_path / "images"), "--edges"]
    words += ["--masks", str(tmp_path / "masks"), "--out", str(tmp_path / "m.npz")]
    assert main(words) != 0
    assert "a mask has two values, but" in capsys.readouterr().err
    assert not (tmp_path / "m.npz").exists()
