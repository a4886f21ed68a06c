"""`segment train --unaries network`, and what it says without JAX."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.cli.main import main
from engine.core.errors import InvalidProblemError
from engine.datasets.label_maps import write_label_map
from engine.datasets.masks import write_mask
from engine.datasets.synthetic_images import generate_leaf_images
from engine.estimators import Segmenter
from engine.learning.segmentation.model import load_segmentation_model
from engine.learning.segmentation.network import learning
from engine.learning.segmentation.network.learning import NetworkOptions
from engine.learning.segmentation.network.training import HOW_TO_GET


@pytest.fixture(autouse=True)
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train networks as small as those of the tests of learning, which are compiled already."""
    monkeypatch.setattr(learning, "CPU_WIDTH", 2)
    monkeypatch.setattr(learning, "CPU_BATCH", 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "leaves"
    place.mkdir()
    pictures = generate_leaf_images(4, rng=np.random.default_rng(1), shape=(32, 32))
    modes = ("RGB", "L", "RGBA", "RGB")
    for number, (picture, mode) in enumerate(zip(pictures, modes, strict=True)):
        Image.fromarray(picture.image).convert(mode).save(place / f"leaf{number}.png")
        write_mask(place / f"leaf{number}.mask.png", picture.mask)
    return place


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(["segment", *words, "--json"])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    return code, json.loads(lines[-1]) if lines else {}, said.err


def train(folder: Path, *options: str) -> list[str]:
    out = str(folder.parent / "model.npz")
    return ["train", "--images", str(folder), "--out", out, "--loss", "trees", *options]


def test_grey_and_transparent_pictures_are_learned_from_and_predicted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--unaries", "network", "--network-steps", "2", "--max-seconds", "600")
    code, result, _ = run(capsys, *train(folder, *options))
    assert (code, result["unaries"], result["left_out"]) == (0, "network", [])
    model, out = str(folder.parent / "model.npz"), str(folder.parent / "out")
    code, result, _ = run(
        capsys, "predict", "--images", str(folder), "--model", model, "--out", out
    )
    assert (code, result["n_images"]) == (0, 4)


def test_the_network_alone_is_named_in_the_result_and_has_the_channels_that_were_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--unaries", "network", "--network-steps", "2", "--loss", "network")
    code, result, said = run(capsys, *train(folder, *options, "--network-width", "3"))
    assert (code, result["loss"]) == (0, "network"), said
    network = load_segmentation_model(folder.parent / "model.npz").network
    assert network is not None
    assert network.shape.width == 3


def test_without_jax_the_command_says_how_to_get_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.learning.segmentation.network.training.find_spec", lambda name: None
    )
    code, _, said = run(capsys, *train(folder / "absent", "--unaries", "network"))
    assert code != 0
    assert HOW_TO_GET in said
    assert not (folder.parent / "model.npz").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--network-steps", "5"), "--network-steps belongs to --unaries network"),
        (("--network-width", "5"), "--network-width belongs to --unaries network"),
        (("--loss", "network"), "--loss network belongs to --unaries network"),
        (("--unaries", "network", "--solver", "auto"), "belong to --unaries linear"),
        (("--unaries", "network", "--network-steps", "0"), "network-steps"),
        (("--unaries", "network", "--network-width", "256"), "--network-width"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: tuple[str, ...],
    sentence: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        code, _, said = run(capsys, *train(folder, *options))
    except SystemExit as ended:
        code, said = int(str(ended.code)), capsys.readouterr().err
    assert code != 0
    assert sentence in said


def test_label_maps_take_a_network_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in folder.glob("*.mask.png"):
        labels = np.asarray(Image.open(path)) // 255
        path.unlink()
        labels[:4] = 2
        write_label_map(folder / f"{path.name.split('.')[0]}_labels.png", labels, (0, 1, 2))
    options = ("--unaries", "network", "--network-steps", "2", "--classes", "a,b,c")
    code, result, said = run(capsys, *train(folder, *options))
    assert code == 0, said
    assert result["unaries"] == "network"


@pytest.mark.parametrize(
    ("options", "channels", "steps"),
    [
        ((), learning.EDGE_WIDTH, learning.EDGE_STEPS),
        (("--network-steps", "9"), learning.EDGE_WIDTH, 9),
        (("--network-width", "7"), 7, learning.EDGE_STEPS),
        (("--max-seconds", "60"), None, None),
    ],
)
def test_edges_of_objects_are_learned_with_options_of_their_own(
    options: tuple[str, ...],
    channels: int | None,
    steps: int | None,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[NetworkOptions] = []

    def stopped(*_: Any, network: NetworkOptions, **__: Any) -> None:
        asked.append(network)
        raise InvalidProblemError("Asked enough.")

    monkeypatch.setattr("engine.cli.segment_training.train_class_segmentation", stopped)
    words = train(folder, "--unaries", "network", "--edges", *options)
    assert "Asked enough." in run(capsys, *words)[2]
    assert asked == [NetworkOptions(channels, steps)]


def test_the_estimator_refuses_other_unaries() -> None:
    with pytest.raises(InvalidProblemError, match="unaries: expected one of boosted, network"):
        Segmenter(unaries="linear").fit([], [])
