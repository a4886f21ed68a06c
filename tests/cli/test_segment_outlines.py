"""``segment`` learns from other programs' outlines, in a folder, a file or a ZIP."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from engine.cli.main import main

NAMES = ("a.png", "b.png", "c.png", "d.png")
LEFT, RIGHT = [2, 2, 18, 2, 18, 38, 2, 38], [24, 2, 46, 2, 46, 38, 24, 38]


def scene(seed: int) -> Image.Image:
    """A dark and a bright half."""
    pixels = np.random.default_rng(seed).integers(0, 60, (40, 48, 3))
    pixels[:, 22:] += 150
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(NAMES):
        scene(seed).save(tmp_path / name)
    return tmp_path


def coco(names=NAMES, **changes) -> dict:
    images = [
        {"id": k, "file_name": name, "width": 48, "height": 40} for k, name in enumerate(names)
    ]
    annotations = [
        {"id": 2 * k + place, "image_id": k, "category_id": place, "segmentation": [outline]}
        for k in range(len(names))
        for place, outline in ((1, LEFT), (2, RIGHT))
    ]
    categories = [{"id": 1, "name": "Dark"}, {"id": 2, "name": "Bright"}]
    return {"images": images, "categories": categories, "annotations": annotations} | changes


def labelme(name: str) -> dict:
    shapes = [
        {"label": label, "points": np.reshape(outline, (4, 2)).tolist(), "shape_type": "polygon"}
        for label, outline in (("Dark", LEFT), ("Bright", RIGHT))
    ]
    return {"imagePath": name, "imageHeight": 40, "imageWidth": 48, "shapes": shapes}


def cvat(names=NAMES) -> str:
    def points(outline):
        return ";".join(f"{x},{y}" for x, y in np.reshape(outline, (4, 2)))

    images = "".join(
        f'<image name="{name}" width="48" height="40">'
        f'<polygon label="Dark" points="{points(LEFT)}"/>'
        f'<polygon label="Bright" points="{points(RIGHT)}"/></image>'
        for name in names
    )
    return f"<annotations><version>1.1</version>{images}</annotations>"


def run(capsys, folder, *words):
    code = main(["segment", *map(str, words), "--images", str(folder), "--json"])
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    return code, json.loads(lines[-1]) if lines else {}, captured.err


def train(capsys, folder, *words):
    return run(capsys, folder, "train", "--out", folder / "m.npz", "--max-seconds", 5, *words)


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("way", ["beside", "folder", "file", "zip", "labelme", "cvat"])
def test_outlines_are_learned_from_wherever_they_lie(folder, capsys, way) -> None:
    """The command line said that COCO "is not read here: the pages take COCO and labelme"."""
    words, text = [], json.dumps(coco())
    if way == "beside":
        (folder / "all.json").write_text(text)
    elif way == "folder":
        (folder / "notes").mkdir()
        (folder / "notes" / "all.json").write_text(text)
        words = ["--masks", folder / "notes"]
    elif way == "file":
        (folder / "elsewhere").mkdir()
        (folder / "elsewhere" / "all.json").write_text(text)
        words = ["--masks", folder / "elsewhere" / "all.json"]
    elif way == "zip":
        content = zipped({"annotations/all.json": text, "README.md": "made by nobody"})
        (folder / "notes.zip").write_bytes(content)
        words = ["--masks", folder / "notes.zip"]
    elif way == "labelme":
        for name in NAMES:
            (folder / name).with_suffix(".json").write_text(json.dumps(labelme(name)))
    else:
        (folder / "annotations.xml").write_text(cvat())
    code, result, error = train(capsys, folder, *words)
    assert (code, result["skipped"]) == (0, []), error
    assert result["n_images"] == 4
    # labelme counts the pixels of its lines as well, CVAT and COCO those whose middle is inside
    inside = {"Dark": 4 * 17 * 37, "Bright": 4 * 23 * 37}
    centred = {"Dark": 4 * 16 * 36, "Bright": 4 * 22 * 36}
    assert result["known_pixels"] == (inside if way == "labelme" else centred)
    code, result, error = run(capsys, folder, "evaluate", "--model", folder / "m.npz", *words)
    assert (code, error) == (0, "")
    assert result["error"] < 0.05
    assert list(result["classes"]) == ["Dark", "Bright"]


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (coco(categories=[{"id": 1, "name": "Cell"}, {"id": 2, "name": "cell"}]), "one class"),
        (coco(("z.png",)), "all.json is about z.png, which is not in this set"),
        (coco(images=[{"id": k, "file_name": n, "width": 9} | {"height": 9} for k, n in
                      enumerate(NAMES)]), "a.png has 9 x 9 pixels there, but a.png has 48 x 40"),
        (coco(annotations=[]), "all.json has no annotations"),
        ({"a": 1}, "all.json is of no program that is read here"),
        (coco(annotations=[{"id": 5, "image_id": 0, "category_id": 1, "bbox": [1, 1, 2, 2]}]),
         "annotation 5 is a box without outline"),
    ],
)  # fmt: skip
def test_what_the_pages_refuse_is_refused_in_their_words(folder, capsys, tree, reason) -> None:
    (folder / "all.json").write_text(json.dumps(tree))
    code, result, error = train(capsys, folder)
    assert code == 2
    assert reason in error
    assert error.count("\n") == 1
    assert set(result) == {"error"}
    assert not (folder / "m.npz").exists()


def test_a_file_that_cannot_be_used_is_named_and_the_others_are_read(folder, capsys) -> None:
    (folder / "all.json").write_text(json.dumps(coco()))
    (folder / "areas.csv").write_text("name,area\na.png,12\n")
    code, result, error = train(capsys, folder)
    assert code == 0
    assert [row["name"] for row in result["skipped"]] == ["areas.csv"]
    assert "skipped areas.csv" in error


def test_masks_are_preferred_and_what_has_none_is_said(folder, capsys) -> None:
    (folder / "all.json").write_text(json.dumps(coco()))
    mask = np.zeros((40, 48), dtype=np.uint8)
    mask[:, 22:] = 255
    Image.fromarray(mask).save(folder / "a.mask.png")
    code, result, error = train(capsys, folder, "--unaries", "linear")
    assert (code, result["n_images"]) == (0, 1)
    assert "outlines such as those of all.json are read only where no picture has a mask" in error


def test_classes_and_weights_can_be_given(folder, capsys) -> None:
    (folder / "all.json").write_text(json.dumps(coco()))
    words = ["--classes", "bright,dark", "--class-weights", "balanced"]
    code, result, _ = train(capsys, folder, *words)
    assert (code, list(result["known_pixels"])) == (0, ["bright", "dark"])
    code, _, error = train(capsys, folder, "--classes", "bright,grey")
    assert code == 2
    assert "The annotations name Dark, which is none of the 2 classes." in error


def test_a_model_of_masks_is_not_compared_with_outlines(folder, capsys) -> None:
    mask = np.zeros((40, 48), dtype=np.uint8)
    mask[:, 22:] = 255
    Image.fromarray(mask).save(folder / "a.mask.png")
    assert train(capsys, folder, "--unaries", "linear")[0] == 0
    (folder / "a.mask.png").unlink()
    (folder / "all.json").write_text(json.dumps(coco()))
    code, _, error = run(capsys, folder, "evaluate", "--model", folder / "m.npz")
    assert code == 2
    assert "This model was trained on masks" in error
