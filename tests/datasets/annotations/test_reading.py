"""Annotations of every program, painted as that program shows them, or refused by name."""

import io
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import roifile
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.class_maps import read_class_map
from engine.datasets.annotations.ilastik import read_ilastik
from engine.datasets.annotations.imagej import read_roi
from engine.datasets.annotations.label_tables import read_label_table
from engine.datasets.annotations.pictures import annotations_by_picture, read_annotation_file
from engine.datasets.annotations.raster import paint_strokes
from engine.datasets.annotations.reading import read_annotations
from engine.datasets.annotations.shapes import Annotation

STRANGERS = Path(__file__).resolve().parents[1] / "strangers/annotations"
SIZE = (64, 64)


def painted(annotation: Annotation, size: tuple[int, int] = SIZE) -> dict[str, np.ndarray]:
    """The pixels of every class, as the painter paints them one after the other."""
    names = sorted({shape.name for shape in annotation.shapes if shape.name is not None})
    values = {None: 0} | {name: k for k, name in enumerate(names, start=1)}
    strokes = [
        {
            "tool": shape.tool,
            "value": values[shape.name],
            "points": shape.points,
            "radius": shape.radius,
            "radii": [],
        }
        for shape in annotation.shapes
    ]
    labels = paint_strokes(strokes, size, 1)
    return {name: labels == values[name] for name in names}


def read(content: object, name: str = "a.json", **options: object) -> list[Annotation]:
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return read_annotations(content, name, **options)


def block(top: int, bottom: int, left: int, right: int) -> np.ndarray:
    mask = np.zeros(SIZE[::-1], dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


# -- Files that strangers brought --------------------------------------------------------------


def test_four_points_of_a_labelme_rectangle_are_its_box() -> None:
    (found,) = read((STRANGERS / "labelme_rectangle_4points.json").read_bytes())
    (pixels,) = painted(found).values()
    assert pixels.sum() == 231
    assert np.array_equal(pixels, block(10, 21, 10, 31))


def test_what_is_not_utf_8_is_read_where_it_names_a_picture() -> None:
    content = (STRANGERS / "labelme_gbk.json").read_bytes()
    (found,) = read(content, is_picture=lambda path: path == "细胞.png")
    assert found.image == "细胞.png"
    with pytest.raises(InvalidProblemError, match="is not in UTF-8"):
        read(content)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("coco_rle_other_size", "annotation 1: its mask has 32 x 64 pixels, but its image 64 x 32"),
        ("coco_one_box_without_outline", "annotation 2 is a box without outline"),
    ],
)
def test_annotations_that_cannot_be_painted_are_named_by_their_number(name, reason) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        read((STRANGERS / f"{name}.json").read_bytes())


def test_keys_are_equal_as_text_and_as_numbers() -> None:
    (found,) = read((STRANGERS / "coco_string_image_id.json").read_bytes())
    assert np.array_equal(painted(found)["cell"], block(10, 20, 10, 20))


def test_one_outline_may_stand_without_the_list_around_it() -> None:
    (found,) = read((STRANGERS / "coco_flat_polygon.json").read_bytes())
    assert np.array_equal(painted(found)["cell"], block(10, 20, 10, 20))
    tree = json.loads((STRANGERS / "coco_flat_polygon.json").read_bytes())
    tree["annotations"][0]["segmentation"] = [[10, 10, 20, 10, 20, 20, 10, 20], 10, 20]
    with pytest.raises(InvalidProblemError, match="annotation 1: its outline is no list"):
        read(tree)


def test_an_outline_of_four_numbers_is_a_box() -> None:
    (found,) = read((STRANGERS / "coco_polygon_of_4_numbers.json").read_bytes())
    assert np.array_equal(painted(found)["cell"], block(10, 20, 10, 20))
    tree = json.loads((STRANGERS / "coco_polygon_of_4_numbers.json").read_bytes())
    tree["annotations"][0]["bbox"] = [10, 10, 20, 20]
    (found,) = read(tree)
    assert np.array_equal(painted(found)["cell"], block(10, 30, 10, 30))


# -- labelme -----------------------------------------------------------------------------------


def test_what_labelme_ignores_is_no_class_and_wipes_what_lies_below() -> None:
    shapes = [
        {"label": "cell", "shape_type": "rectangle", "points": [[4, 4], [30, 30]]},
        {"label": "__ignore__", "shape_type": "polygon", "points": [[10, 10], [20, 10], [20, 20]]},
    ]
    (found,) = read({"shapes": shapes, "imagePath": "a.png"})
    pixels = painted(found)
    assert list(pixels) == ["cell"]
    assert not pixels["cell"][12, 18]
    assert pixels["cell"][25, 25]


MIT = """<annotation><filename>a.jpg</filename><folder>x</folder>
<imagesize><nrows>64</nrows><ncols>64</ncols></imagesize>
<object><name>car</name><deleted>0</deleted><polygon>
<pt><x>10</x><y>10</y></pt><pt><x>20</x><y>10</y></pt><pt><x>20</x><y>20</y></pt>
<pt><x>10</x><y>20</y></pt></polygon></object>
<object><name>gone</name><deleted>1</deleted><polygon><pt><x>1</x><y>1</y></pt></polygon></object>
</annotation>"""


def test_polygons_of_mit_labelme() -> None:
    (found,) = read(MIT.encode(), "a.xml")
    assert (found.image, found.size) == ("a.jpg", (64, 64))
    assert np.array_equal(painted(found)["car"], block(10, 20, 10, 20))


# -- CVAT --------------------------------------------------------------------------------------

CVAT = """<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta/>
<image id="0" name="train/a.png" width="64" height="64">
<polygon label="cell" points="10.00,10.00;20.00,10.00;20.00,20.00;10.00,20.00" z_order="0"/>
<box label="hole" xtl="12" ytl="12" xbr="15" ybr="16" z_order="1"/>
<mask label="spot" rle="1, 2, 1, 4" left="40" top="30" width="4" height="2" z_order="0"/>
<ellipse label="round" cx="50" cy="50" rx="8" ry="4"/>
<polyline label="line" points="30,2;30,9"/>
<tag label="whole"/></image>
<image id="1" name="empty.png" width="64" height="64"/></annotations>"""


def test_shapes_of_cvat_images() -> None:
    (found,) = read(CVAT.encode(), "annotations.xml")
    assert (found.image, found.size) == ("train/a.png", (64, 64))
    pixels = painted(found)
    assert np.array_equal(pixels["hole"], block(12, 16, 12, 15))
    assert np.array_equal(pixels["cell"], block(10, 20, 10, 20) & ~block(12, 16, 12, 15))
    spot = np.zeros((64, 64), dtype=bool)
    spot[30, 41:43] = spot[31, 40:44] = True
    assert np.array_equal(pixels["spot"], spot)
    assert pixels["round"].sum() == pytest.approx(np.pi * 8 * 4, rel=0.06)
    assert pixels["line"][5, 30]
    assert "whole" not in pixels


def test_tracks_of_a_cvat_task_lie_on_their_frames() -> None:
    content = b"""<annotations><version>1.1</version><track id="0" label="cell">
    <box frame="0" outside="0" xtl="1" ytl="2" xbr="5" ybr="6"/>
    <box frame="1" outside="1" xtl="1" ytl="2" xbr="5" ybr="6"/>
    <polygon frame="7" outside="0" points="10,10;20,10;20,20;10,20"/></track></annotations>"""
    first, last = read(content, "annotations.xml")
    assert (first.image, last.image) == ("frame_000000", "frame_000007")
    assert np.array_equal(painted(last)["cell"], block(10, 20, 10, 20))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<annotation><object><bndbox/></object></annotation>", "VOC annotation, whose boxes"),
        (b"<html/>", "XML of no program that is read here"),
        (b"<annotations><version>1.1", "not whole XML"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><annotations/>", "not whole XML"),
        (CVAT.replace("polygon", "cuboid").encode(), "a cuboid is no area"),
        (CVAT.replace('rle="1, 2', 'rle="9, 2').encode(), "a mask lacks a part"),
        (MIT.replace("<x>10</x>", "").encode(), "object 1 lacks a part"),
    ],
)
def test_xml_that_is_not_read_is_refused_by_cause(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidProblemError, match=reason):
        read(content, "a.xml")


# -- VIA ---------------------------------------------------------------------------------------


def via_regions() -> list[dict]:
    return [
        {
            "shape_attributes": {
                "name": "polygon",
                "all_points_x": [10, 20, 20, 10],
                "all_points_y": [10, 10, 20, 20],
            },
            "region_attributes": {"label": "cell"},
        },
        {
            "shape_attributes": {"name": "rect", "x": 30, "y": 40, "width": 5, "height": 4},
            "region_attributes": {"label": "dust"},
        },
        {
            "shape_attributes": {"name": "circle", "cx": 50, "cy": 12, "r": 6},
            "region_attributes": {"label": "cell"},
        },
    ]


@pytest.mark.parametrize("form", ["project", "annotations", "first version", "table"])
def test_regions_of_via(form: str) -> None:
    regions = via_regions()
    rows = {"a.png123": {"filename": "a.png", "size": 123, "regions": regions}}
    content: object = rows
    if form == "project":
        content = {"_via_settings": {}, "_via_img_metadata": rows}
    if form == "first version":
        rows["a.png123"]["regions"] = {str(k): one for k, one in enumerate(regions)}
    if form == "table":
        lines = ["filename,file_size,file_attributes,region_count,region_id,"
                 "region_shape_attributes,region_attributes"]  # fmt: skip
        for k, one in enumerate(regions):
            cells = [json.dumps(one[key]).replace('"', '""') for key in one]
            lines.append(f'a.png,123,"{{}}",3,{k},"{cells[0]}","{cells[1]}"')
        content = "\n".join(lines).encode()
    (found,) = read(content, "via.csv" if form == "table" else "via.json")
    pixels = painted(found)
    assert found.image == "a.png"
    assert np.array_equal(pixels["dust"], block(40, 44, 30, 35))
    assert pixels["cell"][block(10, 20, 10, 20)].all()
    assert pixels["cell"].sum() == pytest.approx(100 + np.pi * 36, rel=0.05)


def test_regions_of_via_whose_class_nobody_can_say_are_refused() -> None:
    regions = via_regions()
    for one in regions:
        one["region_attributes"] = {"shade": "dark", "age": "old"}
    with pytest.raises(InvalidProblemError, match="the attributes shade, age"):
        read({"x": {"filename": "a.png", "regions": regions}})
    for one in regions:
        one["region_attributes"] = {"shade": "dark", "class": {"cell": True, "dust": False}}
    (found,) = read({"x": {"filename": "a.png", "regions": regions}})
    assert list(painted(found)) == ["cell"]


# -- QuPath ------------------------------------------------------------------------------------


def qupath(kind: object = None) -> dict:
    ring = [[10, 10], [30, 10], [30, 30], [10, 30], [10, 10]]
    hole = [[15, 15], [20, 15], [20, 20], [15, 20], [15, 15]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring, hole]},
        "properties": {"objectType": "annotation", "classification": kind},
    }


@pytest.mark.parametrize("form", ["collection", "list", "alone"])
def test_outlines_of_qupath_have_holes(form: str) -> None:
    """GeoJSON was refused by name."""
    one = qupath({"name": "Tumor", "color": [200, 0, 0]})
    tree = {
        "collection": {"type": "FeatureCollection", "features": [one]},
        "list": [one],
        "alone": one,
    }[form]
    (found,) = read(tree, "a.geojson")
    assert found.image == ""
    pixels = painted(found)["Tumor"]
    assert np.array_equal(pixels, block(10, 30, 10, 30) & ~block(15, 20, 15, 20))


def test_what_qupath_ignores_is_wiped_and_what_has_no_class_is_an_object() -> None:
    several = {
        "type": "MultiPolygon",
        "coordinates": [[[[2, 2], [6, 2], [6, 6], [2, 6]]], [[[40, 40], [44, 40], [44, 44]]]],
    }
    tree = [qupath(), {**qupath({"name": "Ignore*"}), "geometry": several}]
    (found,) = read(tree, "a.geojson")
    pixels = painted(found)
    assert list(pixels) == ["Object"]
    derived = qupath({"names": ["Tumor", "Positive"]})
    (found,) = read(derived, "a.geojson")
    assert list(painted(found)) == ["Tumor: Positive"]


def test_a_feature_without_place_is_refused_by_its_number() -> None:
    with pytest.raises(InvalidProblemError, match="feature 2 lacks a part"):
        read([qupath(), {"type": "Feature", "geometry": None}], "a.geojson")


# -- COCO panoptic -----------------------------------------------------------------------------


def panoptic() -> tuple[dict, bytes]:
    ids = np.zeros((64, 64), dtype=int)
    ids[10:20, 10:20], ids[30:40, 30:50] = 7, 70_000
    colours = np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=2).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(colours).save(stream, "PNG")
    tree = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 64, "height": 64}],
        "annotations": [
            {
                "image_id": 1,
                "file_name": "a.png",
                "segments_info": [{"id": 7, "category_id": 1}, {"id": 70_000, "category_id": 2}],
            }
        ],
        "categories": [{"id": 1, "name": "cell"}, {"id": 2, "name": "sky"}],
    }
    return tree, stream.getvalue()


def test_segments_of_coco_panoptic_have_the_classes_of_their_json() -> None:
    """They became classes called "Colour #070000"."""
    tree, png = panoptic()
    (found,) = read(tree, find_map={"a.png": png}.get)
    assert (found.image, found.size) == ("a.jpg", (64, 64))
    pixels = painted(found)
    assert np.array_equal(pixels["cell"], block(10, 20, 10, 20))
    assert np.array_equal(pixels["sky"], block(30, 40, 30, 50))


def test_panoptic_files_that_are_not_whole_are_refused_by_name(tmp_path) -> None:
    tree, png = panoptic()
    with pytest.raises(InvalidProblemError, match=r"its segments lie in a\.png, which did"):
        read(tree)
    del tree["annotations"][0]["segments_info"][0]
    with pytest.raises(InvalidProblemError, match="holds segment 7, which the JSON does not name"):
        read(tree, find_map={"a.png": png}.get)
    small = np.zeros((64, 64, 3), np.uint8)
    small[5:9, 5:9, 0], small[20:30, 5:9, 0] = 7, 8
    stream = io.BytesIO()
    Image.fromarray(small).save(stream, "PNG")
    with pytest.raises(InvalidProblemError, match="numbers segments by its colours, as COCO"):
        read_class_map(stream.getvalue(), "a_label.png")


# -- ilastik and ImageJ ------------------------------------------------------------------------


def ilastik(axes: str = "yxc", shape: tuple[int, ...] = (10, 12, 1)) -> bytes:
    labels = np.zeros(shape, np.uint8)
    labels[2:4, 3:6], labels[8] = 1, 2
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        group = file.create_group("PixelClassification")
        group["LabelNames"] = np.array([b"Cell", b"Rest"])
        group["LabelColors"] = np.array([[255, 0, 0], [0, 0, 255]])
        block = group.create_dataset("LabelSets/labels000/block0000", data=labels, compression=4)
        block.attrs["blockSlice"] = "[5:15,6:18,0:1]"
        about = file.create_group("Input Data/infos/lane0000/Raw Data")
        about["filePath"], about["nickname"] = "pictures/a.png", "a"
        about["axistags"] = json.dumps({"axes": [{"key": key} for key in axes]})
    return stream.getvalue()


def test_labels_of_an_ilastik_project() -> None:
    (found,) = read_ilastik(ilastik(), "p.ilp")
    assert found.image == "a.png"
    pixels = painted(found)
    assert np.array_equal(pixels["Cell"], block(7, 9, 9, 12))
    assert np.array_equal(pixels["Rest"], block(13, 14, 6, 18))
    assert {shape.colour for shape in found.shapes} == {"#ff0000", "#0000ff"}


def test_ilastik_projects_that_are_not_read_are_refused_by_cause() -> None:
    with pytest.raises(InvalidProblemError, match="is no ilastik project"):
        read_ilastik(b"hello", "p.ilp")
    for end in (100, 2000, len(ilastik()) // 2):
        with pytest.raises(InvalidProblemError, match="damaged"):
            read_ilastik(ilastik()[:end], "p.ilp")
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_group("ObjectClassification")
    with pytest.raises(InvalidProblemError, match="without pixel classification"):
        read_ilastik(stream.getvalue(), "p.ilp")
    with pytest.raises(InvalidProblemError, match="a volume or a film"):
        read_ilastik(ilastik("yxz", (10, 12, 3)), "p.ilp")


@pytest.mark.parametrize("is_exact", [False, True])
def test_rois_that_roifile_writes(is_exact: bool) -> None:
    corners = np.array([[10, 10], [20, 10], [20, 20], [10, 20]], float) + 0.25 * is_exact
    roi = roifile.ImagejRoi.frompoints(corners if is_exact else corners.astype(int))
    found = read_roi(roi.tobytes(), "a.roi", "a.png")
    assert np.array_equal(painted(found)["Object"], block(10, 20, 10, 20))


# -- Tables of classes -------------------------------------------------------------------------


def png(values: np.ndarray, palette: list[int] | None = None) -> bytes:
    picture = Image.frombytes("P" if palette else "L", values.shape[::-1], values.tobytes())
    if palette:
        picture.putpalette(palette)
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


VALUES = np.zeros((64, 64), np.uint8)
VALUES[10:20, 10:20], VALUES[30:40, 30:50], VALUES[60:] = 1, 2, 255
VOC = [0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0] + [9] * 756


@pytest.mark.parametrize(
    ("name", "content", "palette"),
    [
        ("class_names.txt", "__ignore__\n_background_\ncat\ndog\n", VOC),
        ("labelmap.txt", "# label:color_rgb:parts:actions\nbackground:0,0,0::\n"
         "cat:128,0,0::\ndog:0,128,0::\n", VOC),
        ("_classes.csv", "Pixel Value, Class\n0, background\n1, cat\n2, dog\n", None),
    ],
)  # fmt: skip
def test_tables_of_exports_name_the_classes(name, content, palette) -> None:
    """labelme's second class was called "Aeroplane", Roboflow's "Class 1"."""
    table = read_label_table(content.encode(), f"x/{name}")
    found = read_class_map(png(VALUES, palette), "a.mask.png", table=table)
    assert found is not None
    pixels = painted(found)
    assert list(pixels) == ["Background", "cat", "dog"]
    assert np.array_equal(pixels["cat"], block(10, 20, 10, 20))
    assert not any(one[60:].any() for one in pixels.values())


def test_the_largest_number_of_sixteen_bits_is_unknown_as_well() -> None:
    deep = VALUES.astype(np.uint16)
    deep[deep == 255] = 65_535
    stream = io.BytesIO()
    Image.fromarray(deep).save(stream, "PNG")
    found = read_class_map(stream.getvalue(), "a_labels.png")
    assert found is not None
    assert {shape.number for shape in found.shapes} == {0, 1, 2}


def test_single_points_are_not_joined_by_a_line() -> None:
    """Points of CVAT, labelme, QuPath and ImageJ were one stroke, and lines ran between them."""
    places = [[5, 5], [40, 5], [40, 50]]
    shape = {"label": "cell", "shape_type": "points", "points": places}
    geometry = {"type": "MultiPoint", "coordinates": places}
    cvat = (
        b"<annotations><version>1.1</version><image name='a.png' width='64' height='64'>"
        b"<points label='cell' points='5,5;40,5;40,50'/></image></annotations>"
    )
    roi = roifile.ImagejRoi.frompoints(np.array(places))
    roi.roitype = roifile.ROI_TYPE.POINT
    for (found,) in (
        read({"shapes": [shape], "imagePath": "a.png"}),
        read({"type": "Feature", "geometry": geometry, "properties": {}}),
        read(cvat, "a.xml"),
        [read_roi(roi.tobytes(), "a.roi", "a.png")],
    ):
        (pixels,) = painted(found).values()
        assert pixels.sum() <= 3 * 9
        assert pixels[5, 5]
        assert not pixels[5, 20]


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("categories", [{"id": 1, "name": "Cell"}, {"id": "1", "name": "Gap"}]),
        ("images", [{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]),
    ],
)
def test_two_things_of_one_id_are_refused(part: str, rows: list[dict]) -> None:
    """The last of two categories named all outlines, and the last of two images got them."""
    outline = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[4, 4, 9, 4, 9, 9]]}
    tree = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "Cell"}],
        "annotations": [outline],
    }
    with pytest.raises(InvalidProblemError, match=rf"a\.json: two {part} have the id 1"):
        read(tree | {part: rows})
    assert read(tree | {part: [rows[0], rows[0]]})


OUTSIDE = [100, 100, 120, 100, 120, 120]


@pytest.mark.parametrize("points", [OUTSIDE, [-30, 5, -10, 5, -10, 20], [5, 90, 20, 90, 20, 99]])
@pytest.mark.parametrize("form", ["coco", "labelme", "points", "ignored", "geojson"])
def test_an_outline_outside_its_picture_is_refused_by_name(form: str, points: list[int]) -> None:
    """It was painted on no pixel, and its class had none, silently."""
    places = [points[k : k + 2] for k in range(0, len(points), 2)]
    kind = "points" if form == "points" else "polygon"
    label = "__ignore__" if form == "ignored" else "cell"
    tree: dict = {
        "shapes": [{"label": label, "shape_type": kind, "points": places}],
        "imagePath": "a.png",
    }
    if form == "coco":
        outline = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [points]}
        tree = {
            "images": [{"id": 1, "file_name": "a.png"}],
            "categories": [{"id": 1, "name": "cell"}],
            "annotations": [outline],
        }
    elif form == "geojson":
        geometry = {"type": "Polygon", "coordinates": [[*places, places[0]]]}
        tree = {"type": "Feature", "geometry": geometry, "properties": {}}
    content = json.dumps(tree).encode()

    def painted_on(width: int, height: int) -> list:
        found = read_annotation_file(content, "a.json", ["a.png"])
        return annotations_by_picture(
            found, ["a.png"], "a.json", size_of=lambda picture: (width, height)
        )

    with pytest.raises(
        InvalidProblemError, match=r"a\.json: an? .* lies outside a\.png, which has"
    ):
        painted_on(64, 48)
    if min(points) >= 0:
        assert painted_on(130, 130)
