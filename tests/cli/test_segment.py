"""`python -m engine segment`: train, predict, evaluate, with some bad files in every folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.testing import assert_array_equal
from PIL import Image

from engine.cli import segment
from engine.cli.main import main
from engine.core.progress import Progress
from engine.datasets.masks import understand_mask, write_mask
from engine.datasets.synthetic_images import generate_leaf_images
from tests.learning.segmentation.told_pictures import told_leaves


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("leaves")
    pictures = generate_leaf_images(4, rng=np.random.default_rng(1), shape=(60, 80))
    for number, picture in enumerate(pictures):
        Image.fromarray(picture.image).save(place / f"leaf{number}.jpg", quality=95)
        write_mask(place / f"leaf{number}.mask.png", picture.mask)
    (place / "broken.jpg").write_bytes((place / "leaf0.jpg").read_bytes()[:700])
    (place / "renamed.png").write_text("a text")
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    path = folder.parent / "model.npz"
    assert main(["segment", "train", "--images", str(folder), "--out", str(path)]) == 0
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["segment", *words, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_train_reports_its_certificate(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "m.npz")
    options = ("--lambda", "50", "--gap", "1e-2", "--max-side", "64", "--seed", "3")
    code, result = run(capsys, "train", "--images", str(folder), "--out", out, *options)
    assert code == 0
    assert result["relative_gap"] <= 1e-2
    assert result["objective"] - result["log_likelihood"] == pytest.approx(result["duality_gap"])
    assert result["lambda"] == 50
    assert result["n_images"] == 4
    assert result["n_pixels"] == 4 * 48 * 64
    masks = [understand_mask(path) for path in folder.glob("*.mask.png")]
    assert result["marked_pixels"] == sum(mask.n_pixels for mask in masks) > 0
    assert result["objects"] == sum(mask.n_objects for mask in masks)
    assert {row["name"] for row in result["skipped"]} == {"broken.jpg", "renamed.png"}


def test_predict_writes_a_mask_and_marginals_of_the_original_size(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model), "--out", str(tmp_path / "out"))
    code, result = run(capsys, "predict", *words)
    assert code == 0
    assert result["n_images"] == 4
    assert len(result["skipped"]) == 2
    mask = np.asarray(Image.open(tmp_path / "out" / "leaf2.mask.png"))
    marginals = np.load(tmp_path / "out" / "leaf2.marginals.npy", allow_pickle=False)
    assert mask.shape == marginals.shape == (60, 80)
    assert set(np.unique(mask)) <= {0, 255}
    assert marginals.dtype == np.float32
    assert np.mean((marginals > 0.5) == (mask == 255)) > 0.95


def test_predictions_never_replace_masks_beside_the_pictures(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are called NAME.mask.png: without a refusal the drawn masks were lost."""
    for name in ("leaf0.jpg", "leaf1.jpg", "leaf1.mask.png"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    drawn = (tmp_path / "leaf1.mask.png").read_bytes()
    words = ("--images", str(tmp_path), "--model", str(model), "--out")
    assert main(["segment", "predict", *words, str(tmp_path / "new" / "..")]) == 2
    assert "choose another folder" in capsys.readouterr().err
    assert (tmp_path / "leaf1.mask.png").read_bytes() == drawn
    assert not (tmp_path / "leaf0.mask.png").exists()
    (tmp_path / "leaf1.mask.png").unlink()
    assert main(["segment", "predict", *words, str(tmp_path)]) == 0
    assert (tmp_path / "leaf1.mask.png").exists()


def test_predictions_never_replace_masks_of_another_folder(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of --masks holds the same names; predictions may replace predictions alone."""
    drawn = folder / "leaf1.mask.png"
    (tmp_path / drawn.name).write_bytes(drawn.read_bytes())
    words = ("predict", "--images", str(folder), "--model", str(model), "--out", str(tmp_path))
    code, refused = run(capsys, *words)
    assert code == 2
    assert "leaf1.mask.png: this mask would be overwritten" in refused["error"]
    assert [path.name for path in tmp_path.iterdir()] == [drawn.name]
    (tmp_path / drawn.name).unlink()
    assert [run(capsys, *words)[0] for _ in range(2)] == [0, 0]


@pytest.fixture
def mixed(folder: Path, tmp_path: Path) -> Path:
    """Two good pairs; a mask of another size; a photograph for a mask."""
    place = tmp_path / "mixed"
    place.mkdir()
    for number in range(4):
        name = f"leaf{number}"
        for path in (folder / f"{name}.jpg", folder / f"{name}.mask.png"):
            (place / path.name).write_bytes(path.read_bytes())
    write_mask(place / "leaf1.mask.png", np.ones((60, 60), dtype=bool))
    grey = np.linspace(0, 255, 60 * 80).reshape(60, 80).astype(np.uint8)
    Image.fromarray(grey).save(place / "leaf3.mask.png")
    return place


def test_a_bad_mask_stops_neither_learning_nor_comparing(
    mixed: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--out", str(tmp_path / "m.npz"), "--gap", "0.5", "--max-side", "32")
    code, trained = run(capsys, "train", "--images", str(mixed), *options)
    assert code == 0
    assert trained["n_images"] == 2
    code, compared = run(capsys, "evaluate", "--images", str(mixed), "--model", str(model))
    assert code == 0
    assert [row["name"] for row in compared["images"]] == ["leaf0", "leaf2"]
    for result in (trained, compared):
        reasons = {row["name"]: row["reason"] for row in result["skipped"]}
        assert set(reasons) == {"leaf1.jpg", "leaf3.jpg"}
        assert "the mask is 60 x 60 pixels" in reasons["leaf1.jpg"]
        assert "does not look like a mask" in reasons["leaf3.jpg"]


def test_features_are_kept_from_run_to_run(
    mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("train", "--images", str(mixed), "--gap", "0.5", "--max-side", "32")
    cache = tmp_path / "cache"
    results = [
        run(capsys, *words, "--out", str(tmp_path / "m.npz"), "--cache", str(cache))[1]
        for _ in range(2)
    ]
    assert len(list(cache.glob("*.npz"))) == 2
    assert results[0]["objective"] == results[1]["objective"]


def test_a_killed_training_goes_on_from_its_checkpoint(
    mixed: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, out = tmp_path / "state.npz", str(tmp_path / "m.npz")
    words = ("train", "--images", str(mixed), "--max-side", "32", "--gap", "1e-6", "--out", out)
    words += ("--checkpoint", str(state))
    steps: list[int] = []

    def interrupt(progress: Progress) -> None:
        if progress.iteration == 4:
            raise KeyboardInterrupt

    def count(progress: Progress) -> None:
        if progress.objective is not None:
            steps.append(progress.iteration)

    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("engine.cli.main.progress_callback", lambda: interrupt)
    assert main(["segment", *words]) == 130
    assert state.exists()
    monkeypatch.setattr("engine.cli.main.progress_callback", lambda: count)
    code, result = run(capsys, *words)
    assert code == 0
    assert result["relative_gap"] <= 1e-6
    assert steps[0] >= 3


def test_evaluate_compares_with_masks_beside_or_elsewhere(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model))
    code, beside = run(capsys, "evaluate", *words)
    assert code == 0
    assert [row["name"] for row in beside["images"]] == ["leaf0", "leaf1", "leaf2", "leaf3"]
    assert set(beside["mean"]) == {"error_map", "error_mpm", "iou", "log_loss"}
    assert beside["mean"]["error_map"] < 0.1
    for path in folder.glob("*.mask.png"):
        (tmp_path / path.name.replace(".mask", "")).write_bytes(path.read_bytes())
    _, elsewhere = run(capsys, "evaluate", *words, "--masks", str(tmp_path))
    assert elsewhere["mean"] == beside["mean"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--images", "{empty}", "--out", "{empty}/m.npz"], "no pictures"),
        (["train", "--images", "{bad}", "--out", "{bad}/m.npz"], "None of the images"),
        (["train", "--images", "{folder}", "--out", "{empty}/no/m.npz"], "does not exist"),
        (["train", "--images", "{folder}", "--out", "{empty}"], "this is a folder"),
        (
            [
                *("train", "--images", "{folder}", "--out", "{empty}/m.npz"),
                *("--checkpoint", "{empty}/no/state.npz"),
            ],
            "does not exist",
        ),
        (["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--rho", "2"], "--rho: exp"),
        (["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--gap", "0"], "--gap: exp"),
        (["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--gap", "nan"], "--gap: exp"),
        (["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--lambda", "0"], "--lambda:"),
        (
            ["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--max-side", "4"],
            "--max-side: expected a whole number of at least 8",
        ),
        (
            ["train", "--images", "{folder}", "--out", "{empty}/m.npz", "--max-seconds", "-1"],
            "--max-seconds",
        ),
        (
            ["predict", "--images", "{folder}", "--model", "{bad}/a.jpg", "--out", "{empty}"],
            "model",
        ),
        (["predict", "--images", "{folder}", "--model", "nix", "--out", "{empty}"], "no such file"),
        (["train", "--images", "{folder}"], "--out"),
        (["dance"], "invalid choice"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    words: list[str],
    sentence: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jpg").write_text("no picture")
    places = {"empty": tmp_path / "empty", "bad": tmp_path / "bad", "folder": folder}
    assert main(["segment", *(word.format(**places) for word in words)]) == 2
    errors = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error:")]
    assert len(errors) == 1
    assert sentence in errors[0]


def test_deep_pictures_are_shown_as_those_that_were_learned_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dim picture alone is no brighter than in the company that the model learned from."""
    many, one = tmp_path / "many", tmp_path / "one"
    many.mkdir()
    one.mkdir()
    pictures = generate_leaf_images(3, rng=np.random.default_rng(2), shape=(40, 56))
    for k, picture in enumerate(pictures):
        values = picture.image.mean(axis=2) * (16, 12, 3)[k]
        tifffile.imwrite(many / f"p{k}.tif", values.astype(np.uint16))
        write_mask(many / f"p{k}_mask.png", picture.mask)
    (one / "p2.tif").write_bytes((many / "p2.tif").read_bytes())
    model = tmp_path / "model.npz"
    words = ("--images", str(many), "--out", str(model), "--loss", "trees", "--max-seconds", "9")
    assert run(capsys, "train", *words)[0] == 0
    for folder in (many, one):
        out = ("--model", str(model), "--out", str(tmp_path / f"{folder.name}_out"))
        assert run(capsys, "predict", "--images", str(folder), *out)[0] == 0
    found = [np.load(tmp_path / f"{name}_out" / "p2.marginals.npy") for name in ("many", "one")]
    assert_array_equal(*found)
    with np.load(model) as parts:
        arrays = dict(parts) | {"view": np.array("{}")}
    np.savez(model, **arrays)
    words = ("--images", str(one), "--model", str(model), "--out", str(tmp_path / "not_written"))
    assert main(["segment", "predict", *words]) == 2
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "not_written").exists()


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Three pictures with maps of three labels, and one on which two of them occur."""
    place = tmp_path / "labelled"
    place.mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        values = np.zeros((20, 30), dtype=np.uint8)
        values[4:10, 4:10], values[14:18, 4:10] = 1, 1
        if number:
            values[4:10, 14:24] = 2
        noisy = 60 * values[:, :, None] + rng.integers(0, 30, (20, 30, 3))
        Image.fromarray(noisy.astype(np.uint8)).save(place / f"p{number}.png")
        Image.fromarray(values).save(place / f"p{number}_labels.png")
    return place


def test_label_maps_are_recognised_and_named(
    capsys: pytest.CaptureFixture[str], labelled: Path
) -> None:
    """Without --classes each file was skipped: it should have been drawn in black and white."""
    words = ("--images", str(labelled), "--out", str(labelled / "m.npz"), "--loss", "trees")
    code, answer = run(capsys, "train", *words)
    assert code == 0
    assert answer["labels"] == "label maps"
    assert list(answer["known_pixels"]) == ["0", "1", "2"]
    assert (answer["n_images"], answer["skipped"]) == (4, [])
    judged = ("--images", str(labelled), "--model", str(labelled / "m.npz"))
    code, answer = run(capsys, "evaluate", *judged)
    assert (code, list(answer["classes"])) == (0, ["0", "1", "2"])
    assert main(["segment", "train", *words]) == 0
    assert "labels: label maps\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--rho", "0.3"), "--rho does not go with label maps"),
        (("--solver", "theta"), "--solver does not go with label maps"),
        (("--unaries", "linear"), "--unaries linear does not go with label maps"),
        (("--loss", "clique"), "choose one of likelihood, univariate, trees"),
    ],
)
def test_options_without_an_effect_on_recognised_label_maps_are_refused(
    capsys: pytest.CaptureFixture[str], labelled: Path, options: tuple[str, ...], sentence: str
) -> None:
    words = ("--images", str(labelled), "--out", str(labelled / "m.npz"), *options)
    code, answer = run(capsys, "train", *words)
    assert code == 2
    assert sentence in answer["error"]
    assert not (labelled / "m.npz").exists()


def test_numbered_objects_are_masks_and_one_label_map_among_masks_is_skipped(
    capsys: pytest.CaptureFixture[str], mixed: Path
) -> None:
    numbers = np.zeros((60, 80), dtype=np.uint16)
    for number in range(8):
        numbers[5:15, 10 * number : 10 * number + 6] = 1 + number
    tifffile.imwrite(mixed / "numbered.tif", numbers)
    (mixed / "leaf1.mask.png").unlink()
    (mixed / "numbered.tif").rename(mixed / "leaf1_mask.tif")
    values = np.zeros((60, 80), dtype=np.uint8)
    values[:30, :30], values[30:, :30], values[30:, 50:] = 1, 2, 1
    Image.fromarray(values).save(mixed / "leaf3.mask.png")
    words = ("--images", str(mixed), "--out", str(mixed / "m.npz"), "--loss", "trees")
    code, answer = run(capsys, "train", *words)
    assert (code, answer["labels"], answer["n_images"]) == (0, "masks", 3)
    (row,) = answer["skipped"]
    assert "a mask has two values" in row["reason"]


def test_the_best_mask_comes_with_its_bound(
    folder: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", str(folder), "--model", str(model), "--out", str(tmp_path / "out"))
    code, result = run(capsys, "predict", *words, "--readout", "map")
    assert code == 0
    for row in result["images"]:
        assert row["score"] <= row["upper_bound"] <= row["score"] + 1e-6 * abs(row["score"])


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Grainy pictures with masks, and a folder of what another program told of them."""
    place = tmp_path / "told"
    (place / "maps").mkdir(parents=True)
    for number, (image, mask, given) in enumerate(zip(*told_leaves(5), strict=True)):
        Image.fromarray(image).save(place / f"p{number}.png")
        write_mask(place / f"p{number}.mask.png", mask)
        np.save(place / "maps" / f"p{number}.npy", np.rint(255 * given).astype(np.uint8))
    return place


@pytest.mark.parametrize("unaries", ["boosted", "linear"])
def test_masks_are_learned_with_maps_of_another_program(
    told: Path, capsys: pytest.CaptureFixture[str], unaries: str
) -> None:
    images, maps = ("--images", str(told)), ("--maps", str(told / "maps"))
    options = ("--unaries", unaries, "--loss", "univariate")
    errors = []
    for beside in ((), maps):
        out = str(told / f"{unaries}{len(beside)}.npz")
        code, _ = run(capsys, "train", *images, "--out", out, *options, *beside)
        assert code == 0
        code, result = run(capsys, "evaluate", *images, "--model", out, *beside)
        errors.append(result["mean"]["error_mpm"])
    assert errors[1] < 0.8 * errors[0]
    answer = {name: str(told / name) for name in ("whole", "tiled")}
    words = (*images, "--model", str(told / f"{unaries}2.npz"))
    for name, more in (("whole", ()), ("tiled", ("--tiles",))):
        code, result = run(capsys, "predict", *words, *maps, *more, "--out", answer[name])
        assert code == 0
    whole, tiled = (np.load(f"{answer[name]}/p1.marginals.npy") for name in ("whole", "tiled"))
    assert np.abs(whole - tiled).max() < 1e-4
    assert main(["segment", "predict", *words, "--out", str(told / "none")]) == 2
    assert "learned with 1 map beside each image" in capsys.readouterr().err
    plain = (*images, "--model", str(told / f"{unaries}0.npz"), "--out", str(told / "none"))
    assert main(["segment", "predict", *plain, *maps]) == 2
    assert "learned with 0 maps" in capsys.readouterr().err


def test_maps_in_tiles_that_do_not_fit_are_refused(
    told: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, maps = ("--images", str(told)), ("--maps", str(told / "maps"))
    out = str(told / "m.npz")
    run(capsys, "train", *images, "--out", out, "--loss", "trees", *maps)
    words = ["segment", "predict", *images, *maps, "--model", out, "--tiles", "--out"]
    for values, sentence in (
        (np.zeros((48, 64, 2)), "comes with 2"),
        (np.zeros((48, 30)), "30 x 48 pixels but it is 64 x 48"),
        (np.full((48, 64), np.nan), "must lie between 0 and 1"),
        (np.array([{}]), "cannot be read"),
    ):
        for number in range(5):
            np.save(told / "maps" / f"p{number}.npy", values)
        assert main([*words, str(told / "out")]) == 2
        assert sentence in capsys.readouterr().err


def test_a_picture_without_its_map_is_passed_over(
    told: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (told / "maps" / "p2.npy").unlink()
    words = ("--images", str(told), "--out", str(told / "m.npz"), "--loss", "trees")
    code, result = run(capsys, "train", *words, "--maps", str(told / "maps"))
    assert code == 0
    assert result["n_images"] == 4
    assert "no map of it was found" in result["skipped"][0]["reason"]


def test_a_model_without_a_step_is_not_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "untrained.npz"
    words = ["--images", str(folder), "--out", str(out), "--unaries", "linear"]
    assert main(["segment", "train", *words, "--max-seconds", "0.0001"]) == 1
    assert "nothing was learned and no model was written" in capsys.readouterr().err
    assert not out.exists()


def test_training_reports_what_its_time_limit_left_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--images", folder, "--out", tmp_path / "short.npz", "--max-seconds", 0.01]
    code, result = run(capsys, "train", *map(str, words))
    assert code == 0
    assert result["status"] == "time limit"
    assert "univariate: no time to learn its weights" in result["left_out"]
    assert set(result["held_out_errors"]) == {"trees"}
    text = segment.render({"left_out": result["left_out"]})
    assert "left out at the time limit: univariate: no time to learn its weights" in text
