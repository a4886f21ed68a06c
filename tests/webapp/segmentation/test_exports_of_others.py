"""Whole exports of other programs, as they come: ZIPs, folders, and files dropped together."""

import io
import json
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import roifile
from PIL import Image

from engine.datasets.annotations.raster import paint_strokes
from engine.datasets.object_files import label_tiff
from tests.webapp.factories.images import encoded, picture, upload, zipped
from tests.webapp.roles import Page
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services import uploads
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.painting import _strokes
from webapp.segmentation.services.uploads import (
    FileResult,
    UploadChoices,
    upload_take,
    upload_take_all,
)

STRANGERS = Path(__file__).resolve().parents[2] / "datasets/strangers"
SIDE = 36, 24


@pytest.fixture
def image_set(bob) -> ImageSet:
    return image_set_create(user=bob, name="Set", foreground="cell")


def take(user, image_set, name: str, content: bytes, **choices: str) -> list[FileResult]:
    return list(
        upload_take(
            user=user,
            image_set=image_set,
            uploaded=upload(name, content),
            choices=UploadChoices(**choices),
        )
    )


def take_all(user, image_set, *files: tuple[str, bytes]) -> list[FileResult]:
    return list(
        upload_take_all(user=user, image_set=image_set, files=[upload(*one) for one in files])
    )


def names_of(image_set: ImageSet) -> list[str]:
    image_set.refresh_from_db()
    return [one["name"] for one in image_set.classes]


def labels(image_set: ImageSet, name: str) -> dict[str, np.ndarray]:
    """The pixels of every class that is painted on a picture."""
    file = image_set.files.get(name=name)
    painted = paint_strokes(_strokes(file), (file.width, file.height), 1)
    image_set.refresh_from_db()
    found = {one["name"]: painted == one["value"] for one in image_set.classes}
    return {name: pixels for name, pixels in found.items() if pixels.any()}


def block(top: int, bottom: int, left: int, right: int) -> np.ndarray:
    mask = np.zeros(SIDE[::-1], dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


THREE = np.zeros((24, 36), np.uint8)
THREE[4:10, 4:20], THREE[14:20, 4:20], THREE[:, 30:] = 1, 2, 255
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0] + [9] * 756


def png(values: np.ndarray, palette: list[int] | None = None) -> bytes:
    made = Image.frombytes("P" if palette else "L", values.shape[::-1], values.tobytes())
    if palette:
        made.putpalette(palette)
    stream = io.BytesIO()
    made.save(stream, "PNG")
    return stream.getvalue()


# -- A laboratory's labels ---------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("photograph", "map_name", "classes"),
    [("thin.jpg", "thin_labels.png", 3), ("q1.jpg", "q1.png", 3)],
)
def test_labels_beside_a_photograph_are_its_classes(
    bob, image_set, photograph, map_name, classes, order
) -> None:
    """A map of 0, 1, a thin line of 2 and 255 became a mask of 255; q1.png a second picture."""
    files = [(one, (STRANGERS / "lab" / one).read_bytes()) for one in (photograph, map_name)]
    results = take_all(bob, image_set, *files[::order])
    assert [one.outcome for one in results] == ["added", "added"]
    assert list(image_set.files.values_list("name", flat=True)) == [photograph]
    values = np.asarray(Image.open(STRANGERS / "lab" / map_name))
    painted = labels(image_set, photograph)
    assert len(painted) == classes
    for name, pixels in painted.items():
        number = 0 if name == "Background" else int(name.removeprefix("Class "))
        assert np.array_equal(pixels, values == number)
    numbers = {one["name"]: one["value"] for one in image_set.classes}
    assert (numbers["Class 1"], numbers["Class 2"]) == (1, 2)


def test_labels_that_come_before_their_photograph_are_its_classes(bob, image_set) -> None:
    for name in ("q1.png", "q1.jpg"):
        (result,) = take(bob, image_set, name, (STRANGERS / "lab" / name).read_bytes())
    assert result.sentence == ("64 × 64 pixels. q1.png: Recognised: 3 classes, painted on q1.jpg")
    assert list(image_set.files.values_list("name", flat=True)) == ["q1.jpg"]
    assert set(labels(image_set, "q1.jpg")) == {"Background", "Class 1", "Class 2"}


def test_a_photograph_saved_twice_stays_two_pictures(bob, image_set) -> None:
    take(bob, image_set, "a.jpg", encoded(picture()))
    take(bob, image_set, "a.png", encoded(picture(), "PNG"))
    assert image_set.files.filter(role="image").count() == 2


def test_what_was_understood_of_a_mask_is_said_before_it_is_used(client_of, bob, image_set) -> None:
    numbers = np.zeros((24, 36), np.uint16)
    numbers[2:7, 2:7], numbers[2:7, 10:15], numbers[12:17, 2:7] = 1, 2, 60_000
    stream = io.BytesIO()
    Image.fromarray(numbers).save(stream, "PNG")
    take(bob, image_set, "a.jpg", encoded(picture()))
    (result,) = take(bob, image_set, "a_mask.png", stream.getvalue())
    assert result.sentence == "36 × 24 pixels. Understood: 75 pixels, 3 objects"
    page = Page(client_of(bob).get(image_set.get_absolute_url()))
    assert page.one("region", "Files").says("Mask: 75 pixels, 3 objects")


def test_classes_keep_the_numbers_of_their_files(bob, image_set) -> None:
    """Palette maps were renumbered by order of arrival: 15 became 2 here and 3 there."""
    first = np.where(THREE == 1, 15, 0).astype(np.uint8)
    second = np.where(THREE == 2, 3, np.where(THREE == 1, 15, 0)).astype(np.uint8)
    third = np.where(THREE == 1, 200, 3).astype(np.uint8)
    ramp = [side for k in range(256) for side in (k, 255 - k, k * 7 % 256)]
    for name, values in (("a", first), ("b", second), ("c", third)):
        take(bob, image_set, f"{name}.jpg", encoded(picture()))
        values = np.where(block(0, 1, 0, 3), 9, values).astype(np.uint8)
        (result,) = take(bob, image_set, f"{name}_labels.png", png(values, ramp))
        assert result.outcome == "added", result.sentence
    image_set.refresh_from_db()
    numbers = {one["name"]: one.get("number", one["value"]) for one in image_set.classes}
    assert numbers == {
        "Background": 0, "Class 15": 15, "Class 9": 9, "Class 3": 3, "Class 200": 200,
    }  # fmt: skip
    values = {one["name"]: one["value"] for one in image_set.classes}
    assert (values["Class 15"], values["Class 9"], values["Class 3"]) == (15, 9, 3)


# -- Exports of programs -----------------------------------------------------------------------


def test_the_voc_export_of_labelme(bob, image_set) -> None:
    """Its folders of views and arrays have the names of its pictures: all was refused."""
    array = io.BytesIO()
    np.save(array, THREE.astype(np.int32))
    one, view = png(THREE, PALETTE), encoded(picture(3))
    files = {
        "JPEGImages/a.jpg": encoded(picture()),
        "SegmentationClass/a.png": one,
        "SegmentationClassNpy/a.npy": array.getvalue(),
        "SegmentationClassVisualization/a.jpg": view,
        "SegmentationObject/a.png": one,
        "SegmentationObjectNpy/a.npy": array.getvalue(),
        "SegmentationObjectVisualization/a.jpg": view,
        "class_names.txt": b"__ignore__\n_background_\ncat\ndog\n",
    }
    results = take(bob, image_set, "data_dataset_voc.zip", zipped(files))
    assert {one.outcome for one in results} == {"added", "left out"}
    assert list(image_set.files.values_list("name", flat=True)) == ["a.jpg"]
    painted = labels(image_set, "a.jpg")
    assert set(painted) == {"Background", "cat", "dog"}
    assert np.array_equal(painted["cat"], THREE == 1)


def coco(names: list[str]) -> bytes:
    rows = []
    for number in range(len(names)):
        left = 4 + 8 * number
        outline = [left, 4, left + 6, 4, left + 6, 14, left, 14]
        rows.append({"id": number + 1, "image_id": number, "category_id": 1,
                     "segmentation": [outline], "bbox": [left, 4, 6, 10]})  # fmt: skip
    images = [
        {"id": k, "file_name": name, "width": 36, "height": 24} for k, name in enumerate(names)
    ]
    categories = [{"id": 0, "name": "things"}, {"id": 1, "name": "cell"}]
    return json.dumps({"images": images, "annotations": rows, "categories": categories}).encode()


def voc_palette() -> list[int]:
    """VOC's colours: three bits of the number for every channel, the highest first."""
    colours = []
    for value in range(256):
        for channel in range(3):
            bits = [(value >> (3 * place + channel)) & 1 for place in range(3)]
            colours.append(sum(bit << (7 - place) for place, bit in enumerate(bits)))
    return colours


@pytest.mark.parametrize("order", [1, -1])
def test_single_classes_of_voc_are_no_masks(bob, image_set, order: int) -> None:
    """A person in one picture and a cat in the next became objects of one kind, silently."""
    person, cat = (np.where(THREE == 1, value, 0).astype(np.uint8) for value in (15, 8))
    files = [
        ("a.jpg", encoded(picture())), ("b.jpg", encoded(picture(1))),
        ("a.png", png(person, voc_palette())), ("b.png", png(cat, voc_palette())),
    ]  # fmt: skip
    take_all(bob, image_set, *files[::order])
    assert {"Person", "Cat"} <= set(names_of(image_set))
    assert np.array_equal(labels(image_set, "a.jpg")["Person"], person > 0)
    assert np.array_equal(labels(image_set, "b.jpg")["Cat"], cat > 0)


def test_a_mask_of_one_in_voc_s_palette_stays_a_mask(bob, image_set) -> None:
    one = (THREE == 1).astype(np.uint8)
    take_all(bob, image_set, ("a.jpg", encoded(picture())), ("a.png", png(one, voc_palette())))
    assert image_set.files.get(name="a.png").role == "mask"


def test_our_own_numbers_of_objects_come_back_as_a_mask(bob, image_set) -> None:
    numbers = np.zeros((24, 36), np.int32)
    numbers[4:10, 4:20], numbers[14:20, 4:20] = 1, 2
    files = [("a.jpg", encoded(picture())), ("a.objects.tif", label_tiff(numbers))]
    results = take_all(bob, image_set, *files)
    assert "192 pixels, 2 objects" in results[1].sentence
    assert image_set.files.get(name="a.objects.tif").mask_of.name == "a.jpg"
    (photograph,) = take(bob, image_set, "many_objects.png", encoded(picture(2), "PNG"))
    assert image_set.files.get(name=photograph.name).role == "image"


def test_the_coco_export_of_labelme(bob, image_set) -> None:
    files = {
        "JPEGImages/a.jpg": encoded(picture()),
        "Visualization/a.jpg": encoded(picture(3)),
        "annotations.json": coco(["JPEGImages/a.jpg"]),
    }
    results = take(bob, image_set, "data_dataset_coco.zip", zipped(files))
    assert [one.outcome for one in results] == ["added", "added", "left out"]
    assert np.array_equal(labels(image_set, "a.jpg")["cell"], block(4, 14, 4, 10))


def test_a_project_of_roboflow_with_equal_names(bob, image_set) -> None:
    files = {
        "README.roboflow.txt": b"hello",
        "train/a.jpg": encoded(picture(0)),
        "train/_annotations.coco.json": coco(["a.jpg"]),
        "valid/a.jpg": encoded(picture(1)),
        "valid/_annotations.coco.json": coco(["z.jpg", "a.jpg"]).replace(b'"z.jpg"', b'"a.jpg"'),
    }
    files["valid/_annotations.coco.json"] = coco(["a.jpg"]).replace(b"[4, 4, 10", b"[4, 6, 10")
    results = take(bob, image_set, "project.zip", zipped(files))
    assert {one.outcome for one in results} == {"added", "left out"}
    names = list(image_set.files.values_list("name", flat=True))
    assert names == ["train_a.jpg", "valid_a.jpg"]
    train, valid = (labels(image_set, name)["cell"] for name in names)
    assert np.array_equal(train, block(4, 14, 4, 10))
    assert not np.array_equal(train, valid)


def test_masks_of_roboflow_have_the_names_of_its_table(bob, image_set) -> None:
    files = {
        "train/a.jpg": encoded(picture(0)),
        "train/a_mask.png": png(np.minimum(THREE, 2)),
        "train/_classes.csv": b"Pixel Value, Class\n0, background\n1, cat\n2, dog\n",
        "test/a.jpg": encoded(picture(1)),
        "test/a_mask.png": png((THREE == 1).astype(np.uint8)),
        "test/_classes.csv": b"Pixel Value, Class\n0, background\n1, cat\n2, dog\n",
    }
    results = take(bob, image_set, "masks.zip", zipped(files))
    assert {one.outcome for one in results} == {"added", "left out"}
    assert names_of(image_set) == ["Background", "cat", "dog"]
    assert np.array_equal(labels(image_set, "test_a.jpg")["cat"], THREE == 1)


def test_a_project_of_cvat_with_train_and_val(bob, image_set) -> None:
    files = {
        "images/train/a.jpg": encoded(picture(0)),
        "images/val/a.jpg": encoded(picture(1)),
        "annotations/instances_train.json": coco(["a.jpg"]),
        "annotations/instances_val.json": coco(["a.jpg"]).replace(b'"cell"', b'"dust"'),
    }
    results = take(bob, image_set, "project.zip", zipped(files))
    assert {one.outcome for one in results} == {"added"}
    assert list(labels(image_set, "train_a.jpg")) == ["cell"]
    assert list(labels(image_set, "val_a.jpg")) == ["dust"]


def test_cvat_s_xml_of_a_project_names_its_folders(bob, image_set) -> None:
    image = (
        '<image id="0" name="{0}/a.jpg" subset="{0}" width="36" height="24">'
        '<polygon label="{1}" points="4,4;10,4;10,14;4,14"/></image>'
    )
    rows = "".join(image.format(*one) for one in (("train", "cell"), ("val", "dust")))
    files = {
        "images/train/a.jpg": encoded(picture(0)),
        "images/val/a.jpg": encoded(picture(1)),
        "annotations.xml": f"<annotations><version>1.1</version>{rows}</annotations>".encode(),
    }
    results = take(bob, image_set, "project.zip", zipped(files))
    assert {one.outcome for one in results} == {"added"}
    assert list(labels(image_set, "val_a.jpg")) == ["dust"]


def test_coco_panoptic_in_a_zip(bob, image_set) -> None:
    ids = np.zeros((24, 36, 3), np.uint8)
    ids[4:10, 4:20, 0], ids[14:20, 4:20, 0] = 7, 8
    tree = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 36, "height": 24}],
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": [
            {"id": 7, "category_id": 1}, {"id": 8, "category_id": 1}]}],
        "categories": [{"id": 1, "name": "cell"}],
    }  # fmt: skip
    files = {
        "val/a.jpg": encoded(picture()),
        "panoptic_val/a.png": encoded(ids, "PNG"),
        "annotations/panoptic_val.json": json.dumps(tree).encode(),
    }
    results = take(bob, image_set, "panoptic.zip", zipped(files))
    assert [one.outcome for one in results] == ["added", "added"]
    assert np.array_equal(labels(image_set, "a.jpg")["cell"], (THREE > 0) & (THREE < 255))
    assert image_set.files.count() == 1


@pytest.mark.parametrize("layout", ["folders", "names"])
def test_one_mask_for_each_object_is_one_map_of_all(bob, image_set, layout) -> None:
    one, two = block(4, 10, 4, 20), block(10, 20, 4, 20)
    files = {
        "folders": {
            "train/ab12/images/ab12.png": encoded(picture(), "PNG"),
            "train/ab12/masks/f00.png": encoded(one, "PNG"),
            "train/ab12/masks/f11.png": encoded(two, "PNG"),
        },
        "names": {
            "ab12.png": encoded(picture(), "PNG"),
            "ab12_mask_1.png": encoded(one, "PNG"),
            "ab12_mask_2.png": encoded(two, "PNG"),
        },
    }[layout]
    added, joined = take(bob, image_set, "nuclei.zip", zipped(files))
    assert added.name == "ab12.png"
    assert joined.sentence == (
        "2 masks of one object each, joined. 36 × 24 pixels. Understood: 256 pixels, 2 objects"
    )
    image = image_set.files.get(name="ab12.png")
    assert image.paired_mask.name == "ab12_instances.png"


def test_a_mask_of_another_size_among_those_of_objects_is_named(bob, image_set) -> None:
    files = {
        "a.png": encoded(picture(), "PNG"),
        "a_mask_1.png": encoded(block(4, 10, 4, 20), "PNG"),
        "a_mask_2.png": encoded(block(4, 10, 4, 20)[:9], "PNG"),
    }
    _, refused = take(bob, image_set, "nuclei.zip", zipped(files))
    assert "a_mask_2.png: its 36 x 9 pixels are not the 36 x 24" in refused.sentence


# -- Which picture is meant --------------------------------------------------------------------


def test_outlines_of_two_pictures_are_not_painted_on_one(bob, image_set) -> None:
    content = encoded(picture(size=(64, 64)), "PNG")
    take(bob, image_set, "a.png", content)
    name = "coco_same_name_in_folders.json"
    (result,) = take(bob, image_set, name, (STRANGERS / "annotations" / name).read_bytes())
    assert result.outcome == "refused"
    assert "two images, day1/a.png and day2/a.png" in result.sentence
    files = {"day1/a.png": content, "day2/a.png": content, name: (
        STRANGERS / "annotations" / name).read_bytes()}  # fmt: skip
    results = take(bob, image_set, "days.zip", zipped(files))
    assert [one.outcome for one in results] == ["added"] * 3
    assert labels(image_set, "day2_a.png")["cell"][35, 35]
    assert not labels(image_set, "day1_a.png")["cell"][35, 35]


def test_a_reference_that_two_pictures_may_mean_is_refused(bob, image_set) -> None:
    files = {"x/a.jpg": encoded(picture(0)), "y/a.jpg": encoded(picture(1))}
    results = take(bob, image_set, "both.zip", zipped({**files, "notes.json": coco(["a.jpg"])}))
    assert "which may be y/a.jpg or x/a.jpg" in results[-1].sentence


def rois() -> bytes:
    corners = np.array([[4, 4], [20, 4], [20, 14], [4, 14]])
    roi = roifile.ImagejRoi.frompoints(corners).tobytes()
    return zipped({"0009-0012.roi": roi, "0013-0012.roi": roi})


def test_a_picture_and_its_rois_may_be_dropped_together(client_of, bob, image_set) -> None:
    results = take_all(bob, image_set, ("RoiSet.zip", rois()), ("a.png", encoded(picture(), "PNG")))
    assert [one.outcome for one in results] == ["added"] * 3
    take(bob, image_set, "b.png", encoded(picture(1), "PNG"))
    (early, _) = take(bob, image_set, "RoiSet.zip", rois())
    assert early.is_early
    assert "does not say which picture it is of" in early.sentence
    results = take(bob, image_set, "RoiSet.zip", rois(), beside="b.png")
    assert [one.outcome for one in results] == ["added"] * 2
    answer = client_of(bob).post(
        f"/image-sets/{image_set.pk}/files/",
        {"file": upload("c_rois.zip", rois())},
        headers={"accept": "application/x-ndjson"},
    )
    line = json.loads(b"".join(answer.streaming_content).splitlines()[0])
    assert line["early"] is True


def test_outlines_of_qupath_are_of_the_picture_of_their_name(bob, image_set) -> None:
    ring = [[4, 4], [20, 4], [20, 14], [4, 14]]
    one = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]},
           "properties": {"classification": {"name": "Tumor"}}}  # fmt: skip
    for name in ("a.png", "b.png"):
        take(bob, image_set, name, encoded(picture(), "PNG"))
    (result,) = take(bob, image_set, "a.geojson", json.dumps([one]).encode())
    assert result.sentence == "Recognised: 1 class, painted on a.png"
    (result,) = take(bob, image_set, "z.geojson", json.dumps([one]).encode())
    assert "name z.geojson as a.geojson" in result.sentence


# -- Names -------------------------------------------------------------------------------------


def test_names_of_a_zip_in_no_stated_encoding_are_asked_for(client_of, bob, image_set) -> None:
    """They became other signs, and the label file beside its picture was refused."""
    content = (STRANGERS / "archives/zip_gbk_names.zip").read_bytes()
    (refused,) = take(bob, image_set, "zip_gbk_names.zip", content)
    assert refused.outcome == "refused"
    assert "细胞1" in refused.encodings["gb18030"]
    assert image_set.files.count() == 0
    results = take(bob, image_set, "zip_gbk_names.zip", content, encoding="gb18030")
    assert [one.outcome for one in results] == ["added", "added"], results
    assert list(image_set.files.values_list("name", flat=True)) == ["细胞1.png"]
    answer = client_of(bob).post(
        f"/image-sets/{image_set.pk}/files/",
        {"file": upload("zip_gbk_names.zip", content)},
        headers={"accept": "application/x-ndjson"},
    )
    (line,) = [json.loads(one) for one in b"".join(answer.streaming_content).splitlines()]
    assert {"key": "gb18030", "label": "Chinese, simplified (GBK)"}.items() <= (
        line["encodings"][0].items()
    )


@pytest.mark.parametrize("is_right", [True, False])
def test_names_in_the_unicode_field_of_a_zip_are_taken(bob, image_set, is_right) -> None:
    raw = "细胞.png".encode("gb18030")
    check = zlib.crc32(raw if is_right else b"another")
    field = b"\x01" + check.to_bytes(4, "little") + "细胞.png".encode()
    info = zipfile.ZipInfo("x" * len(raw))
    info.extra = (0x7075).to_bytes(2, "little") + len(field).to_bytes(2, "little") + field
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr(info, encoded(picture(), "PNG"))
    content = stream.getvalue().replace(b"x" * len(raw), raw)
    (result,) = take(bob, image_set, "a.zip", content)
    assert result.outcome == ("added" if is_right else "refused")
    if is_right:
        assert result.name == "细胞.png"


def test_names_of_more_than_200_letters_replace_no_other_and_keep_their_masks(
    bob, image_set
) -> None:
    """They lost their ending, and the second picture replaced the first."""
    first, second = "x" * 220 + "1", "x" * 220 + "2"
    mask = encoded(block(4, 10, 4, 20), "PNG")
    for stem in (first, second):
        (added,) = take(bob, image_set, f"{stem}.jpg", encoded(picture()))
        assert added.outcome == "added"
        assert added.name.endswith(".jpg")
        assert len(added.name) <= 200
        take(bob, image_set, f"{stem}_mask.png", mask)
    images = image_set.files.filter(role="image")
    assert images.count() == 2
    assert all(image.paired_mask is not None for image in images)


def test_of_two_files_of_one_name_in_one_upload_one_is_refused(bob, image_set) -> None:
    content = encoded(picture(0)), encoded(picture(1))
    first, second = take_all(bob, image_set, ("a.jpg", content[0]), ("a.jpg", content[1]))
    assert (first.outcome, second.outcome) == ("added", "refused")
    assert "a.jpg was sent twice" in second.sentence


# -- Bad files among good ones -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["bad_header.npy", "a_mask.png", "a_prob.npy"])
def test_a_damaged_array_is_named_and_the_others_are_read(bob, image_set, name) -> None:
    """The whole upload ended in an error of 500, "Nothing was changed", and files were stored."""
    bad = (STRANGERS / "arrays/bad_header.npy").read_bytes()
    files = {"a.png": encoded(picture(), "PNG"), name: bad, "z.png": encoded(picture(2), "PNG")}
    results = {one.name: one for one in take(bob, image_set, "all.zip", zipped(files))}
    assert results["a.png"].outcome == results["z.png"].outcome == "added"
    assert results[name].outcome == "refused"
    assert name in results[name].sentence
    (alone,) = take(bob, image_set, name, bad)
    assert alone.outcome == "refused"
    assert set(image_set.files.values_list("name", flat=True)) == {"a.png", "z.png"}


def test_an_error_that_nobody_foresaw_stops_no_other_file(bob, image_set, monkeypatch) -> None:
    inspect = uploads.inspect_file

    def fail(path, name, *rest):
        if name == "b.png":
            raise ZeroDivisionError
        return inspect(path, name, *rest)

    monkeypatch.setattr(uploads, "inspect_file", fail)
    files = {f"{name}.png": encoded(picture(k), "PNG") for k, name in enumerate("abc")}
    results = take(bob, image_set, "all.zip", zipped(files))
    assert [one.outcome for one in results] == ["added", "refused", "added"]
    assert "b.png could not be read: an error that nobody foresaw" in results[1].sentence
    assert set(image_set.files.values_list("name", flat=True)) == {"a.png", "c.png"}


def test_masks_of_two_values_that_cannot_be_told_are_refused_in_the_set(bob, image_set) -> None:
    """Stacks, and values beside 255, became masks without a word."""
    take(bob, image_set, "a.png", encoded(picture(size=(40, 40)), "PNG"))
    content = (STRANGERS / "masks/mask_stack.tif").read_bytes()
    (result,) = take(bob, image_set, "a_mask.tif", content)
    assert "It is not used as a mask: it has 3 pages" in result.sentence
    file = image_set.files.get(name="a_mask.tif")
    assert "3 pages" in file.problem
    assert image_set.files.get(name="a.png").paired_mask is None
