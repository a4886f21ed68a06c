"""Which file is a picture and which is its mask."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.testing import assert_array_equal
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.image_folder import list_images, view_of_set
from engine.datasets.image_names import mask_stem
from tests.shared_data import shared_data


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(folder / name)
    return folder


def pairs(folder: Path, masks: Path | None = None) -> dict[str, str | None]:
    return {
        file.image_path.name: file.mask_paths[0].name if file.mask_paths else None
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


def test_masks_may_be_called_as_on_the_pages(tmp_path: Path) -> None:
    folder = touch(tmp_path / "a", "Leaf.JPG", "leaf.MASK.png", "b.png", "b_mask.png")
    touch(folder, "c.webp", "c.tif", "d.png", "d-mask.bmp")
    assert pairs(folder) == {
        "Leaf.JPG": "leaf.MASK.png", "b.png": "b_mask.png", "c.webp": "c.tif", "d.png": "d-mask.bmp"
    }  # fmt: skip


def test_masks_may_be_called_as_other_programs_call_them(tmp_path: Path) -> None:
    """Cellpose's masks had no picture, and those with a word before the name were pictures."""
    folder = touch(tmp_path / "a", "a.png", "a_cp_masks.png", "image_1.png", "mask_1.png")
    touch(folder, "Mask of b.tif", "b.png", "c_0000.png", "c.mask.png", "mask_9.png")
    touch(folder, "Gro\u0308ße.png", "Größe_mask.png")
    assert pairs(folder) == {
        "a.png": "a_cp_masks.png", "image_1.png": "mask_1.png", "b.png": "Mask of b.tif",
        "c_0000.png": "c.mask.png", "mask_9.png": None, "Gro\u0308ße.png": "Größe_mask.png",
    }  # fmt: skip
    masks = touch(tmp_path / "m", "mask_9.png", "label_1.png")
    assert pairs(folder, masks)["mask_9.png"] == "mask_9.png"
    assert pairs(folder, masks)["image_1.png"] == "label_1.png"


def test_masks_may_be_arrays_of_numpy(tmp_path: Path) -> None:
    """They were passed over; arrays that are no masks are results, and no pictures."""
    folder = touch(tmp_path / "a", "x.png", "y.png", "mask_z.png")
    for name in ("x_mask.npy", "y.marginals.npy", "z.npy"):
        np.save(folder / name, np.eye(4, dtype=bool))
    assert pairs(folder) == {"x.png": "x_mask.npy", "y.png": None, "mask_z.png": None}
    (masks := tmp_path / "m").mkdir()
    np.save(masks / "y.npy", np.eye(4, dtype=bool))
    files = {file.name: file for file in list_images(folder, masks)}
    assert_array_equal(files["y"].read_mask((4, 4)), np.eye(4, dtype=bool))


def test_a_second_mask_is_named_when_a_mask_is_wanted(tmp_path: Path) -> None:
    """The last one used to win without a word; whoever only predicts needs neither."""
    folder = touch(tmp_path / "a", "x.jpg", "x.mask.png", "x_mask.png")
    masks = touch(tmp_path / "m", "x.png", "x.mask.png")
    for elsewhere, names in ((None, "x.mask.png and x_mask.png"), (masks, "x.mask.png and x.png")):
        (file,) = list_images(folder, elsewhere)
        assert file.read_image().shape == (4, 4, 3)
        with pytest.raises(InvalidProblemError, match=f"{names} are both masks of x.jpg"):
            file.read_mask((4, 4))


def test_every_ending_of_a_format_and_links_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for number, ending in enumerate((".jfif", ".jpe", ".pnm", ".pbm")):
        (folder / f"{number}{ending}").write_bytes(b"never read")
    (tmp_path / "elsewhere.png").write_bytes(b"never read")
    (folder / "link.png").symlink_to(tmp_path / "elsewhere.png")
    (folder / "broken.png").symlink_to(tmp_path / "nowhere.png")
    assert list(pairs(folder)) == ["0.jfif", "1.jpe", "2.pnm", "3.pbm", "link.png"]


def test_the_stem_of_a_name_that_is_only_the_ending() -> None:
    assert mask_stem(".mask.png") is None
    assert mask_stem("a.b.mask.png") == "a.b"


def test_two_pictures_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = touch(tmp_path / "a", "x.bmp", "X.gif")
    with pytest.raises(InvalidProblemError, match="the same name"):
        list_images(folder)


def test_no_pictures_and_no_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblemError, match=r"no pictures .*\.jpeg, .*\.webp\)"):
        list_images(touch(tmp_path / "empty"))
    (tmp_path / "empty" / "IMG_1.dng").write_bytes(b"no decoder")
    with pytest.raises(InvalidProblemError, match=r"passed over 1, such as IMG_1\.dng"):
        list_images(tmp_path / "empty")
    with pytest.raises(InvalidProblemError, match="no such folder"):
        list_images(tmp_path / "nowhere")


def test_a_missing_mask_is_named(tmp_path: Path) -> None:
    (file,) = list_images(touch(tmp_path / "a", "x.jpg"))
    with pytest.raises(InvalidProblemError, match=r"x\.jpg: no mask"):
        file.read_mask((4, 4))


def test_the_horses_pair_up() -> None:
    files = list_images(shared_data("weizmann_horses/train"))
    assert len(files) == 200
    assert all(len(file.mask_paths) == 1 for file in files)
    image = files[0].read_image()
    assert 0.02 < files[0].read_mask((image.shape[0], image.shape[1])).mean() < 0.8


def test_names_that_other_programs_give_to_masks_are_understood(tmp_path: Path) -> None:
    for name in ("a.jpg", "a_seg.png", "b.png", "b_labels.tif", "c.png", "c_mask.jpg"):
        Image.new("L", (9, 9)).save(tmp_path / name)
    found = {file.name: [path.name for path in file.mask_paths] for file in list_images(tmp_path)}
    assert found == {"a": ["a_seg.png"], "b": ["b_labels.tif"], "c": ["c_mask.jpg"]}


def test_a_mask_goes_before_the_map_of_instances_of_the_same_picture(tmp_path: Path) -> None:
    for name in ("a.png", "a_instances.tif", "a_mask.png"):
        Image.new("L", (9, 9)).save(tmp_path / name)
    (file,) = list_images(tmp_path)
    assert [path.name for path in file.mask_paths] == ["a_mask.png"]


def test_annotations_without_masks_are_named(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (9, 9)).save(tmp_path / name)
    for name in ("a.json", "all.json"):
        (tmp_path / name).write_text("{}")
    for file, note in zip(list_images(tmp_path), ("a.json", "a.json"), strict=True):
        with pytest.raises(InvalidProblemError, match=rf"no mask was found.*{note} are read"):
            file.read_mask((9, 9))


def test_annotations_in_the_folder_of_masks_are_named_too(tmp_path: Path) -> None:
    pictures, masks = tmp_path / "pictures", tmp_path / "masks"
    pictures.mkdir()
    masks.mkdir()
    Image.new("RGB", (9, 9)).save(pictures / "a.png")
    (masks / "a.json").write_text("{}")
    (file,) = list_images(pictures, masks)
    with pytest.raises(
        InvalidProblemError, match=r"no mask was found.*a\.json are read only where"
    ):
        file.read_mask((9, 9))


def test_deep_pictures_of_a_folder_share_one_view(tmp_path: Path) -> None:
    """What is half as bright in the file is half as bright in the picture."""
    values = np.linspace(0, 4000, 2400).reshape(40, 60)
    tifffile.imwrite(tmp_path / "bright.tif", values.astype(np.uint16))
    tifffile.imwrite(tmp_path / "dim.tif", (values / 2).astype(np.uint16))
    tifffile.imwrite(tmp_path / "nothing.tif", np.full((40, 60), np.nan, np.float32))
    (tmp_path / "broken.tif").write_bytes(b"II*\0\x08\0\0\0")
    Image.new("RGB", (9, 9), "red").save(tmp_path / "plain.png")
    files = list_images(tmp_path)
    view = view_of_set(files)
    shown = {f.name: replace(f, view=view) for f in files}
    bright, dim = (shown[name].read_image().astype(int) for name in ("bright", "dim"))
    assert bright.max() == 255
    assert np.abs(dim - bright / 2).max() <= 1
    assert shown["plain"].read_image()[0, 0].tolist() == [255, 0, 0]
    assert view_of_set([shown["plain"]]) is None


def test_sixteen_bits_used_in_full_and_bytes_in_pages_are_shown_as_they_are(tmp_path: Path) -> None:
    for name, most, kind in (("full", 60000, np.uint16), ("bytes", 200, np.uint8)):
        folder = tmp_path / name
        folder.mkdir()
        pages = np.linspace(50, most, 4800).reshape(2, 40, 60).astype(kind)
        tifffile.imwrite(folder / "a.tif", pages)
        files = list_images(folder)
        alone = files[0].read_image()
        assert_array_equal(replace(files[0], view=view_of_set(files)).read_image(), alone)
