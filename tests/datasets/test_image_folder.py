"""Which file is a picture and which is its mask."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.image_folder import list_images
from tests.shared_data import shared_data


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(folder / name)
    return folder


def pairs(folder: Path, masks: Path | None = None) -> dict[str, str | None]:
    return {
        file.image_path.name: file.mask_path.name if file.mask_path else None
        for file in list_images(folder, masks)
    }


def test_masks_beside_their_pictures(tmp_path: Path) -> None:
    folder = touch(tmp_path / "a", "b.png", "b.mask.png", "a.JPG", "a.mask.png", "c.png")
    (folder / "notes.txt").write_text("passed over")
    (folder / ".hidden.png").write_bytes(b"passed over")
    assert pairs(folder) == {"a.JPG": "a.mask.png", "b.png": "b.mask.png", "c.png": None}


def test_masks_in_another_folder(tmp_path: Path) -> None:
    folder, masks = touch(tmp_path / "a", "x.jpg", "y.png"), touch(tmp_path / "m", "x.png")
    touch(masks, "y.mask.png")
    assert pairs(folder, masks) == {"x.jpg": "x.png", "y.png": "y.mask.png"}


def test_a_png_beside_a_photograph_of_its_name_is_its_mask(tmp_path: Path) -> None:
    folder = touch(tmp_path / "a", "horse1.jpg", "horse1.png", "horse2.jpg")
    assert pairs(folder) == {"horse1.jpg": "horse1.png", "horse2.jpg": None}
    assert pairs(folder, folder) == {"horse1.jpg": "horse1.png", "horse2.jpg": None}


def test_two_pictures_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = touch(tmp_path / "a", "x.bmp", "x.gif")
    with pytest.raises(InvalidProblemError, match="the same name"):
        list_images(folder)


def test_no_pictures_and_no_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblemError, match="no pictures"):
        list_images(touch(tmp_path / "empty"))
    with pytest.raises(InvalidProblemError, match="no such folder"):
        list_images(tmp_path / "nowhere")


def test_a_missing_mask_is_named(tmp_path: Path) -> None:
    (file,) = list_images(touch(tmp_path / "a", "x.jpg"))
    with pytest.raises(InvalidProblemError, match=r"x\.jpg: no mask"):
        file.read_mask((4, 4))


def test_the_horses_pair_up() -> None:
    files = list_images(shared_data("weizmann_horses/train"))
    assert len(files) == 200
    assert all(file.mask_path is not None for file in files)
    image = files[0].read_image()
    assert 0.02 < files[0].read_mask((image.shape[0], image.shape[1])).mean() < 0.8
