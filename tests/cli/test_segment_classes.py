"""`segment` with label maps, scribbles and maps of other programs."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.cli.label_codes import label_code
from engine.cli.main import main
from engine.datasets.image_folder import list_images
from engine.datasets.label_maps import read_values
from engine.learning.segmentation import class_learning, detail_choice
from engine.learning.segmentation.model import load_segmentation_model
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures


@pytest.fixture(scope="module", autouse=True)
def few_pixels_judge_edges():  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_learning, "EDGE_LABELS", 10_000)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("classes")
    for number, (image, labels) in enumerate(zip(*class_pictures(4), strict=True)):
        Image.fromarray(image).save(place / f"p{number}.png")
        Image.fromarray(10 * labels).save(place / f"p{number}.labels.png")
    (place / "table.csv").write_text("value,class\n0,ground\n10,water\n20,wood\n255,void\n")
    (place / "z-broken.png").write_bytes((place / "p0.png").read_bytes()[:400])
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    path = folder / "model.npz"
    words = ["--images", str(folder), "--classes", str(folder / "table.csv"), "--out", str(path)]
    assert main(["segment", "train", *words]) == 0
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["segment", *words, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_predictions_have_the_values_of_the_label_maps(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model), "--out", str(tmp_path))
    code, result = run(capsys, "predict", *words, "--readout", "map")
    assert code == 0
    assert result["classes"] == list(CLASSES)
    assert {row["name"] for row in result["skipped"]} == {"z-broken.png"}
    row = result["images"][0]
    found, truth = read_values(row["labels"]), read_values(folder / "p0.labels.png")
    assert set(np.unique(found)) <= {0, 10, 20}
    assert np.mean(found != truth) < 0.2
    assert row["score"] <= row["upper_bound"]
    probabilities = np.load(row["probabilities"])
    assert probabilities.shape == (*truth.shape, 3)
    assert probabilities.sum(axis=2) == pytest.approx(1, abs=1e-3)
    assert sum(row["shares"].values()) == pytest.approx(1)


def test_a_threshold_leaves_the_doubtful_unknown(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model), "--out", str(tmp_path))
    _, result = run(capsys, "predict", *words, "--threshold", "0.95")
    row = result["images"][0]
    is_sure = np.load(row["probabilities"]).max(axis=2) >= 0.95
    assert np.array_equal(read_values(row["labels"]) == 255, ~is_sure)


def test_evaluation_tells_class_by_class(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model))
    code, result = run(capsys, "evaluate", *words)
    assert code == 0
    counts = np.array(result["confusion"])
    assert result["error"] == pytest.approx(1 - np.trace(counts) / counts.sum())
    water = counts[1, 1] / (counts[1].sum() + counts[:, 1].sum() - counts[1, 1])
    assert result["classes"]["water"]["iou"] == pytest.approx(water)
    assert main(["segment", "evaluate", *words]) == 0
    assert "class water" in capsys.readouterr().out


def test_scribbles_and_maps_of_another_program_are_learned_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = class_pictures(3, noise=120.0)  # hardly told apart by colour
    rng = np.random.default_rng(0)
    (tmp_path / "maps").mkdir()
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        Image.fromarray(image).save(tmp_path / f"p{number}.png")
        strokes = np.where(rng.random(label.shape) < 0.08, label, 77).astype(np.uint8)
        Image.fromarray(strokes).save(tmp_path / f"p{number}_mask.png")
        given = np.eye(3)[label] * 0.7 + 0.1
        np.save(tmp_path / "maps" / f"p{number}.npy", np.moveaxis(given, 2, 0).copy())
    out = str(tmp_path / "m.npz")
    words = ("--images", str(tmp_path), "--out", out, "--unknown", "77", "--scale", "1")
    shared = ("--maps", str(tmp_path / "maps"))
    code, result = run(capsys, "train", *words, *shared, "--class-weights", "balanced")
    assert code == 0
    assert sum(result["known_pixels"].values()) < 0.1 * result["n_pixels"]
    answer = str(tmp_path / "out")
    code, result = run(
        capsys, "predict", "--images", str(tmp_path), "--model", out, "--out", answer, *shared
    )
    found = [read_values(row["labels"]) for row in result["images"]]
    assert np.mean([np.mean(a != b) for a, b in zip(found, labels, strict=True)]) < 0.03
    code = main(["segment", "predict", "--images", str(tmp_path), "--model", out, "--out", answer])
    assert code == 2
    assert "learned with 3 maps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("classes", "map_values", "values", "unknown"),
    [
        ("table", (0, 10, 20, 255), (0, 10, 20), (255,)),
        ("bright", (0, 255), (0, 255), ()),
        ("a,b", (0, 1, 255), (0, 1), (255,)),
        ("auto", (0, 7, 255), (0, 7), (255,)),
        ("auto", (0, 255), (0, 255), ()),
    ],
)
def test_255_is_unknown_unless_it_is_a_class(
    classes: str,
    map_values: tuple[int, ...],
    values: tuple[int, ...],
    unknown: tuple[int, ...],
    tmp_path: Path,
) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    drawn = np.resize(np.array(map_values, np.uint8), (20, 20))
    Image.fromarray(drawn).save(tmp_path / "a_mask.png")
    tables = {"table": "0,ground\n10,water\n20,wood\n", "bright": "0,dark\n255,light\n"}
    if classes in tables:
        (tmp_path / f"{classes}.csv").write_text("value,class\n" + tables[classes])
        classes = str(tmp_path / f"{classes}.csv")
    args = argparse.Namespace(classes=classes, unknown=())
    code = label_code(args, list_images(tmp_path))
    assert (code.values, code.unknown) == (values, unknown)
    assert set(np.unique(code.labels(drawn.astype(np.int64), "a"))) <= {0, 1, 2, 255}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--classes", "a,b"), "none of the 2 classes"),
        (("--classes", "missing.csv"), "cannot be read"),
        (("--classes", "auto", "--unknown", "0,10"), "2 to 32"),
        (("--unknown", "many"), "whole numbers"),
        (("--classes", "auto", "--class-weights", "1,2"), "one a class"),
        (("--classes", "auto", "--class-weights", "1,x,2"), "numbers with commas"),
        (("--classes", "auto", "--scale", "3"), "scale"),
        (("--classes", "auto", "--cache", "x"), "--cache does not go"),
        (("--classes", "auto", "--rho", "0.3"), "--rho does not go"),
        (("--classes", "auto", "--unaries", "linear"), "--unaries linear does not go"),
        (("--unaries", "linear", "--no-position"), "--no-position belongs to --unaries boosted"),
        (("--classes", "auto", "--maps", "nowhere"), "no map of it"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    message: str,
) -> None:
    words = ["segment", "train", "--images", str(folder), "--out", str(tmp_path / "m.npz")]
    assert main([*words, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_detail_that_pays_is_chosen(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(detail_choice, "TREES", 4)
    out = str(tmp_path / "m.npz")
    words = ("--images", str(folder), "--out", out, "--max-side", "auto", "--loss", "trees")
    code, result = run(capsys, "train", *words, "--classes", "auto")
    assert code == 0
    assert load_segmentation_model(out).detail.max_side == result["max_side"]
    assert str(result["max_side"]) in result["side_errors"]
    code, _ = run(capsys, "train", *words[:-3], "huge", "--classes", "auto")
    assert code == 2
