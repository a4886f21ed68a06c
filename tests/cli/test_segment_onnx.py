"""`segment train --maps-from NET.onnx`, and prediction and evaluation with the same network."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.cli.main import main
from engine.datasets.masks import write_mask
from engine.datasets.synthetic_images import generate_leaf_images

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from tests.datasets.test_onnx_maps import red, two_scores  # needs onnx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "leaves"
    place.mkdir()
    for number, leaf in enumerate(
        generate_leaf_images(4, rng=np.random.default_rng(1), shape=(32, 32))
    ):
        Image.fromarray(leaf.image).save(place / f"leaf{number}.png")
        write_mask(place / f"leaf{number}.mask.png", leaf.mask)
    return place


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(["segment", *words, "--json"])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    return code, json.loads(lines[-1]) if lines else {}, said.err


def learn(folder: Path, *options: str) -> list[str]:
    out = str(folder.parent / "model.npz")
    return ["train", "--images", str(folder), "--out", out, "--loss", "trees", *options]


def test_a_network_gives_the_maps_in_training_prediction_and_evaluation(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--maps-from", str(two_scores(folder.parent / "net.onnx")), "--maps-scores", "softmax")
    code, _, said = run(capsys, *learn(folder, *given))
    assert code == 0, said
    own = ("--images", str(folder), "--model", str(folder.parent / "model.npz"))
    whole, tiles = str(folder.parent / "whole"), str(folder.parent / "tiles")
    code, result, _ = run(capsys, "predict", *own, "--out", whole, *given)
    assert (code, result["n_images"]) == (0, 4)
    code, result, _ = run(capsys, "predict", *own, "--out", tiles, "--tiles", *given)
    assert (code, result["n_images"]) == (0, 4)
    for number in range(4):
        one, two = (np.load(Path(f) / f"leaf{number}.marginals.npy") for f in (whole, tiles))
        assert np.abs(one.astype(float) - two).max() < 0.05
    code, result, _ = run(capsys, "evaluate", *own, *given)
    assert code == 0
    code, _, said = run(capsys, "predict", *own, "--out", whole)
    assert code != 0
    assert "learned with 2 maps" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--maps-from", "absent.onnx"), "absent.onnx: there is no such file"),
        (("--maps-scores", "softmax"), "--maps-scores belongs to --maps-from"),
        (("--maps-input", "byte"), "--maps-input belongs to --maps-from"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_any_work(
    options: tuple[str, ...], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = run(capsys, *learn(folder, *options))
    assert code != 0
    assert sentence in said
    assert not (folder.parent / "model.npz").exists()


def test_maps_of_two_kinds_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = red(folder.parent / "net.onnx")
    code, _, said = run(capsys, *learn(folder, "--maps", str(folder), "--maps-from", str(path)))
    assert code != 0
    assert "leave one out" in said
