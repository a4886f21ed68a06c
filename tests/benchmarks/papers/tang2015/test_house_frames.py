"""The house reader: real files, and sentences for every kind of damage."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.tang2015.house_frames import (
    GAPS,
    read_house_frame,
    read_house_pairs,
    squared_difference_features,
)
from engine.core.errors import InvalidProblemError
from tests.shared_data import shared_data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A well-formed folder with two frames, ten apart."""
    (tmp_path / "label").mkdir()
    (tmp_path / "pairs").mkdir()
    for number in (1, 11):
        np.savetxt(tmp_path / "label" / f"house{number}", np.arange(60).reshape(30, 2) + number)
        np.savetxt(tmp_path / f"house{number:03d}.scf", np.full((30, 60), number), fmt="%d")
    lines = ["a/houses/house1 a/house001.scf a.png", "a/houses/house11 a/house011.scf b.png"]
    (tmp_path / "pairs" / "houses10_test.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_it_reads_a_frame_and_the_pairs(folder: Path) -> None:
    frame = read_house_frame(folder, 11)
    assert frame.landmarks[0].tolist() == [11.0, 12.0]
    assert (frame.features == 11).all()
    assert frame.image.name == "house.seq10.png"
    assert not frame.features.flags.writeable
    assert read_house_pairs(folder, 10, "test") == ((1, 11),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 2\n", "expected 30 lines of 60 numbers, received 1 lines of 2 numbers"),
        ("", "received 0 lines of no numbers"),
        (("x " * 60 + "\n") * 30, "could not convert"),
        (("nan " * 60 + "\n") * 30, "received NaN"),
        ("é", "expected plain text"),
    ],
)
def test_damaged_features_are_named(folder: Path, text: str, sentence: str) -> None:
    (folder / "house001.scf").write_text(text)
    with pytest.raises(InvalidProblemError, match=f"house001.scf.*{sentence}"):
        read_house_frame(folder, 1)


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(InvalidProblemError, match="house7: cannot be read"):
        read_house_frame(folder, 7)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["house001.scf"], "two lines for every pair"),
        ([], "two lines for every pair"),
        (["house001.scf", "nothing"], "line 2: expected the name of a frame"),
        (["house001.scf", "house012.scf"], "expected frames 10 apart, received 1 and 12"),
    ],
)
def test_damaged_pairs_are_named(folder: Path, lines: list[str], sentence: str) -> None:
    (folder / "pairs" / "houses10_test.txt").write_text("\n".join(lines))
    with pytest.raises(InvalidProblemError, match=sentence):
        read_house_pairs(folder, 10, "test")


def test_the_published_files_read_whole() -> None:
    real = shared_data("cmu_house")
    archive = np.load(real / "house_landmarks.npz")
    landmarks = archive[archive.files[0]]
    for number in (1, 50, 111):
        frame = read_house_frame(real, number)
        np.testing.assert_allclose(frame.landmarks, landmarks[number - 1], atol=1e-4)
        assert frame.features.sum() > 0
        assert frame.image.exists()
    counts = {gap: len(read_house_pairs(real, gap, "test")) for gap in GAPS}
    assert counts[0] == 37
    assert counts[50] == 20
    assert counts[90] == 7
    train = {frame for pair in read_house_pairs(real, 50, "train") for frame in pair}
    assert train <= set(range(1, 112))


def test_squared_differences_per_descriptor_entry() -> None:
    features = squared_difference_features(np.array([[1.0, 2.0]]), np.array([[4.0, 2.5]]))
    np.testing.assert_allclose(features, [[[-9.0, -0.25]]])


def test_descriptors_of_different_shapes_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="second"):
        squared_difference_features(np.zeros((3, 2)), np.zeros((3, 4)))
