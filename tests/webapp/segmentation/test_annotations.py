"""COCO, labelme, maps of classes and scribbles become strokes on their images, or are refused."""

import base64
import io
import json
import struct

import numpy as np
import pytest
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.coco import unpacked_runs
from engine.datasets.annotations.raster import paint_strokes
from engine.datasets.annotations.reading import read_annotations
from tests.webapp.factories.images import encoded, picture, upload, zipped
from webapp.segmentation.models import ImageSet, Stroke
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.painting import _strokes
from webapp.segmentation.services.uploads import upload_take

SQUARE = [4, 4, 20, 4, 20, 14, 4, 14]


@pytest.fixture
def image_set(bob) -> ImageSet:
    made = image_set_create(user=bob, name="Set", foreground="cell")
    list(upload_take(user=bob, image_set=made, uploaded=upload("a.png", PICTURE)))
    return made


PICTURE = encoded(picture(0), "PNG")


def take(user, image_set, name: str, content: bytes):
    return list(upload_take(user=user, image_set=image_set, uploaded=upload(name, content)))


def labels(image_set: ImageSet) -> np.ndarray:
    return paint_strokes(_strokes(image_set.files.get(name="a.png")), (36, 24), 1)


def coco(**changes: object) -> dict:
    return {
        "images": [{"id": 7, "file_name": "img/a.png", "width": 36, "height": 24}],
        "categories": [{"id": 3, "name": "Nucleus"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "segmentation": [SQUARE]}],
        **changes,
    }


def labelme(**changes: object) -> dict:
    shapes = [
        {"label": "Nucleus", "points": [[4, 4], [20, 14]], "shape_type": "rectangle"},
        {"label": "Gap", "points": [[30, 2], [30, 20]], "shape_type": "linestrip"},
    ]
    size = {"imagePath": "..\\pics\\a.png", "imageWidth": 36, "imageHeight": 24}
    return {"version": "5.4.1", "shapes": shapes, **size, **changes}


def class_map(values: np.ndarray, mode: str = "L") -> bytes:
    buffer = io.BytesIO()
    image = Image.frombytes(mode, values.shape[::-1], values.astype(np.uint8).tobytes())
    if mode == "P":
        image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0] + [9] * 756)
    image.save(buffer, "PNG")
    return buffer.getvalue()


THREE = np.zeros((24, 36), np.uint8)
THREE[4:10, 4:20], THREE[14:20, 4:20], THREE[:, 30:] = 1, 2, 255


def test_coco_polygons_and_runs(bob, image_set) -> None:
    mask = np.zeros((24, 36), bool)
    mask[15:20, 25:30] = True
    flat = mask.ravel(order="F").astype(int)
    counts = np.diff(np.flatnonzero(np.diff(flat, prepend=1 - flat[0], append=2))).tolist()
    runs = {"counts": counts, "size": [24, 36]}
    tree = coco()
    tree["annotations"].append({**tree["annotations"][0], "id": 2, "segmentation": runs})
    (result,) = take(bob, image_set, "anno.json", json.dumps(tree).encode())
    assert result.sentence == "Recognised: 1 class, painted on a.png"
    painted = labels(image_set)
    assert painted[10, 10] == 1
    assert (painted[15:20, 25:30] == 1).all()
    assert painted[22, 2] == 0
    image_set.refresh_from_db()
    assert [one["name"] for one in image_set.classes] == ["Nucleus"]


def test_packed_runs_are_those_that_coco_tools_write(bob, image_set) -> None:
    """The string is what pycocotools encodes of the runs beside it."""
    assert unpacked_runs("61X13mN000`0", "a") == [6, 1, 40, 4, 5, 4, 5, 4, 21]
    mask = np.zeros((24, 36), bool)
    mask[3:20, 5:30] = np.random.default_rng(0).random((17, 25)) < 0.5
    flat = mask.ravel(order="F").astype(int)
    counts = np.diff(np.flatnonzero(np.diff(flat, prepend=1, append=2))).tolist()
    tree = coco()
    runs = {"counts": packed_runs(counts), "size": [24, 36]}
    tree["annotations"][0] |= {"segmentation": runs}
    (result,) = take(bob, image_set, "anno.json", json.dumps(tree).encode())
    assert result.sentence == "Recognised: 1 class, painted on a.png"
    assert np.array_equal(labels(image_set) == 1, mask)


def packed_runs(counts: list[int]) -> str:
    """As `rleToString` of the COCO API."""
    letters = []
    for place, count in enumerate(counts):
        left = count - (counts[place - 2] if place > 2 else 0)
        more = True
        while more:
            code, left = left & 31, left >> 5
            more = left != -1 if code & 16 else left != 0
            letters.append(chr((code | (32 if more else 0)) + 48))
    return "".join(letters)


def test_labelme_rectangles_and_lines(bob, image_set) -> None:
    (result,) = take(bob, image_set, "a.json", json.dumps(labelme()).encode())
    assert result.sentence == "Recognised: 2 classes, painted on a.png"
    painted = labels(image_set)
    assert painted[10, 10] == 1
    assert painted[10, 30] == 2


@pytest.mark.parametrize("name", ["a_labels.png", "a.mask.png", "a_seg.png"])
def test_a_map_of_three_classes_is_painted_and_255_stays_unknown(bob, image_set, name) -> None:
    (result,) = take(bob, image_set, name, class_map(THREE))
    assert result.sentence == "Recognised: 3 classes, painted on a.png"
    painted = labels(image_set)
    assert (painted[:, 30:] == 0).all()
    assert (painted[4:10, 4:20] == 1).all()
    assert painted[0, 0] == 3
    image_set.refresh_from_db()
    names = [one["name"] for one in image_set.classes]
    assert names == ["Background", "Class 1", "Class 2"]
    assert image_set.files.count() == 1


def test_the_palette_of_voc_names_its_classes(bob, image_set) -> None:
    take(bob, image_set, "a_labels.png", class_map(THREE, "P"))
    image_set.refresh_from_db()
    assert [one["name"] for one in image_set.classes] == ["Background", "Aeroplane", "Bicycle"]
    assert image_set.classes[1]["colour"] == "#800000"


OBJECTS = np.zeros((24, 36), np.uint8)
OBJECTS[2:6, 2:8], OBJECTS[8:12, 2:8], OBJECTS[14:20, 2:8], OBJECTS[:, 30:] = 1, 2, 3, 255


def names_of(image_set: ImageSet) -> list[str]:
    image_set.refresh_from_db()
    return [one["name"] for one in image_set.classes]


def test_objects_that_voc_numbers_are_no_aeroplanes_bicycles_and_birds(bob, image_set) -> None:
    (result,) = take(bob, image_set, "a_labels.png", class_map(OBJECTS, "P"))
    assert result.sentence == "Recognised: 2 classes, painted on a.png"
    assert names_of(image_set) == ["Background", "Object"]
    painted = labels(image_set)
    assert np.array_equal(painted == 0, OBJECTS == 255)
    assert np.array_equal(painted == 2, (OBJECTS > 0) & (OBJECTS < 255))


def test_one_object_of_voc_is_told_by_its_folder(bob, image_set) -> None:
    one = class_map(np.where(OBJECTS == 255, 255, OBJECTS == 1), "P")
    take(bob, image_set, "voc.zip", zipped({"VOC2012/SegmentationObject/a.png": one}))
    assert names_of(image_set) == ["Background", "Object"]
    assert (labels(image_set) == 2).sum() == 24


def test_of_classes_and_objects_of_one_picture_voc_s_classes_are_taken(bob, image_set) -> None:
    """Both were refused, and so every export of VOC's and CVAT's layout."""
    three = class_map(THREE)
    files = {"SegmentationClass/a.png": three, "SegmentationObject/a.png": class_map(OBJECTS, "P")}
    taken, left = take(bob, image_set, "voc.zip", zipped(files))
    assert (taken.outcome, left.outcome) == ("added", "left out")
    assert "SegmentationClass" in left.sentence
    assert names_of(image_set) == ["Background", "Class 1", "Class 2"]


def test_colours_of_a_map_are_its_classes(bob, image_set) -> None:
    """As CamVid and CVAT write them: they were called no mask."""
    colours = np.array([(0, 0, 0), (128, 0, 0), (0, 200, 0)], dtype=np.uint8)[THREE % 3]
    colours[:2] = (224, 224, 192)  # VOC's border
    (result,) = take(bob, image_set, "a_label.png", encoded(colours, "PNG"))
    assert result.sentence == "Recognised: 3 classes, painted on a.png"
    assert names_of(image_set) == ["Background", "Colour #00c800", "Colour #800000"]
    painted = labels(image_set)
    assert not painted[:2].any()
    assert np.array_equal(painted[2:] == 3, (THREE % 3 == 1)[2:])


def test_a_name_says_that_numbers_are_of_objects(bob, image_set) -> None:
    """Two numbers with a gap were called two classes."""
    (result,) = take(bob, image_set, "a_instances.png", class_map(THREE * 40))
    assert result.sentence == "Recognised: 2 classes, painted on a.png"
    assert names_of(image_set) == ["Background", "Object"]


def test_ilastik_numbers_its_classes_from_one(bob, image_set) -> None:
    """They were an image of their own."""
    take(bob, image_set, "a_Simple Segmentation.png", class_map(np.minimum(THREE, 1) + 1))
    assert names_of(image_set) == ["Class 1", "Class 2"]


def test_a_prefix_names_the_picture_of_a_map_too(bob, image_set) -> None:
    (result,) = take(bob, image_set, "mask_a.png", class_map(THREE))
    assert result.sentence == "Recognised: 3 classes, painted on a.png"


def test_in_scribbles_nothing_is_not_the_background(bob, image_set) -> None:
    (result,) = take(bob, image_set, "a_scribbles1.png", class_map(np.minimum(THREE, 2)))
    assert result.outcome == "added", result.sentence
    painted = labels(image_set)
    assert painted[22, 2] == 0
    assert painted[5, 5] == 1


def test_coco_may_leave_out_how_large_its_images_are(bob, image_set) -> None:
    tree = coco(images=[{"id": 7, "file_name": "a.png"}])
    (result,) = take(bob, image_set, "anno.json", json.dumps(tree).encode())
    assert result.sentence == "Recognised: 1 class, painted on a.png"


def test_a_zip_brings_pictures_before_what_is_about_them(bob, image_set) -> None:
    files = {"0.json": json.dumps(coco(images=[
        {"id": 7, "file_name": "b.png", "width": 36, "height": 24}
    ])).encode(), "b.png": PICTURE}  # fmt: skip
    results = take(bob, image_set, "all.zip", zipped(files))
    assert [result.outcome for result in results] == ["added", "added"]


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"a": 1}, "of no program that is read here"),
        ([1], "of no program that is read here"),
        (coco(images=[{"id": 7, "file_name": "z.png", "width": 36, "height": 24}]), "not in this"),
        (coco(images=[{"id": 7, "file_name": "a.png", "width": 99, "height": 24}]), "99 x 24"),
        (coco(images=[]), "annotation 1 is of image 7, which is not in its list"),
        (coco(annotations=[]), "has no annotations"),
        (labelme(shapes=[]), "has no annotations"),
        (labelme(shapes=[{"label": " ", "points": [[1, 1]]}]), "a shape has no label"),
        (coco(annotations=[{"image_id": 7, "category_id": 3, "bbox": [1, 1, 2, 2]}]), "is a box"),
        (coco(annotations=[{"image_id": 7, "category_id": 3,
              "segmentation": {"counts": "PPYo0", "size": [24, 36]}}]), "do not fill"),
        (coco(annotations=[{"image_id": 7, "category_id": 3,
              "segmentation": {"counts": "61X1~", "size": [24, 36]}}]), "runs of a mask are"),
        (coco(annotations=[{"image_id": 7, "category_id": 3,
              "segmentation": {"counts": "61X", "size": [24, 36]}}]), "runs of a mask are"),
        (coco(annotations=[{"image_id": 7, "category_id": 3,
              "segmentation": {"counts": [5], "size": [24, 36]}}]), "do not fill"),
        (coco(annotations=[{"image_id": 7, "category_id": 3, "segmentation": [[1, "x"]]}]), "part"),
        (labelme(shapes=[{"label": "a", "points": [[1, 1]], "shape_type": "ring"}]), "ring are"),
        (labelme(shapes=[{"label": "a", "points": [[1, 1], [4, 4]], "shape_type": "mask",
                          "mask": "no"}]), "a mask in it is damaged"),
        (labelme(shapes=[{"label": "a", "points": [[1, None]]}]), "lacks a part"),
        (labelme(imageWidth=8), "8 x 24"),
    ],
)  # fmt: skip
def test_what_cannot_be_painted_is_refused_whole(bob, image_set, tree, reason) -> None:
    (result,) = take(bob, image_set, "a.json", json.dumps(tree).encode())
    assert result.outcome == "refused"
    assert reason in result.sentence
    assert not Stroke.objects.exists()


def test_damaged_json_and_maps_of_other_sizes_are_refused(bob, image_set) -> None:
    (cut,) = take(bob, image_set, "a.json", json.dumps(coco()).encode()[:40])
    assert "not whole JSON" in cut.sentence
    (deep,) = take(bob, image_set, "a.json", b"[" * 100_000)
    assert deep.outcome == "refused"
    (small,) = take(bob, image_set, "a_labels.png", class_map(THREE[:12]))
    assert "36 x 12" in small.sentence
    assert image_set.files.count() == 1


def roi(kind: int, corners: list[tuple[int, int]], *, group: int = 0, split: int = 0) -> bytes:
    """As ImageJ writes it: head, points from the corner of their box, second head."""
    xs, ys = zip(*corners, strict=True)
    box = min(ys), min(xs), max(ys), max(xs)
    points = corners if kind not in (1, 2) else []
    head = struct.pack(">4shBx4hH16xh", b"Iout", 229, kind, *box, len(points), 0)
    head += struct.pack(">i8xhh6x", split, 0, 0).ljust(60 - len(head), b"\0")
    head += struct.pack(">i", 64 + 4 * len(points))
    flat = [x - box[1] for x, _ in points] + [y - box[0] for _, y in points]
    second = bytes(48) + bytes([group]) + bytes(15)
    return head + struct.pack(f">{len(flat)}h", *flat) + second


SIDES = [(4, 4), (20, 4), (20, 14), (4, 14)]


@pytest.mark.parametrize(("kind", "area"), [(0, 160), (1, 160), (2, 124), (7, 160)])
def test_an_imagej_roi_is_painted_on_the_picture_of_its_name(bob, image_set, kind, area) -> None:
    (result,) = take(bob, image_set, "a.roi", roi(kind, SIDES))
    assert result.sentence == "Recognised: 1 class, painted on a.png"
    assert names_of(image_set) == ["Object"]
    assert abs((labels(image_set) == 1).sum() - area) <= 4 * (kind == 2)


@pytest.mark.parametrize("archive", ["a.zip", "a_rois.zip", "RoiSet_a.zip"])
def test_rois_of_one_zip_belong_to_the_picture_that_it_is_named_after(
    bob, image_set, archive
) -> None:
    rois = {"0001-0002.roi": roi(0, SIDES), "0002-0005.roi": roi(1, [(24, 6), (30, 9)], group=2)}
    results = take(bob, image_set, archive, zipped(rois))
    assert [result.outcome for result in results] == ["added", "added"]
    assert names_of(image_set) == ["Object", "Group 2"]
    assert (labels(image_set) == 2).sum() == 18


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("b.roi", roi(0, SIDES), "does not say which picture"),
        ("a.roi", roi(0, SIDES)[:70], "is cut off"),
        ("a.roi", roi(0, SIDES, split=9), "several areas in one ROI"),
        ("a.roi", roi(6, SIDES), "nothing, which is no area"),
        ("a.roi", b"hello", "no ImageJ ROI"),
    ],
)
def test_rois_that_are_not_read_are_refused_by_cause(bob, image_set, name, content, reason) -> None:
    (result,) = take(bob, image_set, name, content)
    assert result.outcome == "refused"
    assert reason in result.sentence
    assert not Stroke.objects.exists()


def test_an_outline_of_coco_has_the_area_that_coco_tools_count(bob, image_set) -> None:
    take(bob, image_set, "anno.json", json.dumps(coco()).encode())
    assert (labels(image_set) == 1).sum() == 160


def test_masks_of_labelme_lie_where_their_box_begins(bob, image_set) -> None:
    mask = np.random.default_rng(0).random((6, 9)) < 0.5
    packed = base64.b64encode(encoded(mask, "PNG")).decode()
    shape = {"label": "Cell", "shape_type": "mask", "points": [[5, 7], [13, 12]], "mask": packed}
    turned = {"label": "Cell", "shape_type": "oriented_rectangle",
              "points": [[20, 2], [26, 4], [24, 8], [18, 6]]}  # fmt: skip
    (result,) = take(bob, image_set, "a.json", json.dumps(labelme(shapes=[shape, turned])).encode())
    assert result.sentence == "Recognised: 1 class, painted on a.png"
    painted = labels(image_set)
    assert np.array_equal(painted[7:13, 5:14] == 1, mask)
    assert painted[5, 22] == 1


def test_masks_and_maps_of_numpy_are_taken(bob, image_set) -> None:
    two, three = io.BytesIO(), io.BytesIO()
    np.save(two, THREE == 1)
    np.save(three, THREE.astype(np.int64))
    (result,) = take(bob, image_set, "a_mask.npy", two.getvalue())
    assert result.outcome == "added", result.sentence
    assert image_set.files.get(name="a.png").paired_mask.name == "a_mask.npy"
    (result,) = take(bob, image_set, "a_labels.npy", three.getvalue())
    assert result.sentence == "Recognised: 3 classes, painted on a.png"


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ([{"image_id": 1, "category_id": 1, "segmentation": {}}], "results of COCO without"),
        ({"project": {}, "metadata": {}, "view": {}}, "a project of VIA 3"),
        ([{"data": {}, "annotations": []}], "is of Label Studio"),
        ({"objects": [], "size": {}}, "is of Supervisely"),
    ],
)
def test_annotations_of_other_programs_are_named(bob, image_set, tree, reason) -> None:
    (result,) = take(bob, image_set, "a.json", json.dumps(tree).encode())
    assert reason in result.sentence


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xml", b"<annotation><object/></annotation>", "VOC annotation, whose boxes have no"),
        ("a.svg", b"<svg/>", "drawing of lines (SVG)"),
        ("scan.dcm", bytes(128) + b"DICM" + bytes(40), "DICOM files"),
        ("phone.heic", b"\0\0\0\x18ftypheic" + bytes(40), "damaged or cut off"),
    ],
)
def test_files_of_other_kinds_are_named_and_leave_nothing(
    bob, image_set, name, content, reason
) -> None:
    (result,) = take(bob, image_set, name, content)
    assert result.outcome == "refused"
    assert reason in result.sentence
    assert image_set.files.count() == 1


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
def test_names_that_no_database_takes_are_refused(escape: str) -> None:
    content = b'{"shapes": [], "imagePath": "%s.png"}' % escape.encode()
    with pytest.raises(InvalidProblemError, match="is not whole JSON"):
        read_annotations(content, "a.json")
