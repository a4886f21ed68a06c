"""Every format of annotations that a page, a guide, an option or a message names is built and read.

The lists are taken from the texts themselves: a program that a text gains without a builder fails,
and so does a reader that no list names.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import roifile

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations import reading
from engine.datasets.annotations.pictures import ANNOTATION_ENDINGS, read_annotation_file
from engine.datasets.annotations.reading import read_annotations
from engine.datasets.annotations.shapes import Annotation
from tests.datasets.annotations.test_reading import (
    CVAT,
    MIT,
    block,
    ilastik,
    painted,
    panoptic,
    qupath,
    via_regions,
)
from tests.datasets.test_promised_formats import text, words

SIZE = {"width": 64, "height": 64}
CORNERS = [[10, 10], [20, 10], [20, 20], [10, 20]]


def as_json(tree: object) -> bytes:
    return json.dumps(tree).encode()


def coco() -> bytes:
    flat = [number for corner in CORNERS for number in corner]
    return as_json(
        {
            "images": [{"id": 1, "file_name": "a.png", **SIZE}],
            "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "segmentation": [flat]}],
            "categories": [{"id": 1, "name": "cell"}],
        }
    )


def labelme() -> bytes:
    shape = {"label": "cell", "shape_type": "polygon", "points": CORNERS}
    about = {"imagePath": "a.png", "imageWidth": 64, "imageHeight": 64}
    return as_json({"version": "5.4.1", "shapes": [shape], **about})


def via() -> bytes:
    rows = {"a.png1": {"filename": "a.png", "size": 1, "regions": via_regions()}}
    return as_json({"_via_settings": {}, "_via_img_metadata": rows})


def roi() -> bytes:
    return roifile.ImagejRoi.frompoints(np.array(CORNERS)).tobytes()


# Of each program: the name of its file, its bytes, the class and the place of one object.
SQUARE = block(10, 20, 10, 20)
WRITERS: dict[str, tuple[str, Callable[[], bytes], str, np.ndarray]] = {
    "COCO": ("a.json", coco, "cell", SQUARE),
    "labelme": ("a.json", labelme, "cell", block(10, 21, 10, 21)),
    "CVAT": ("annotations.xml", CVAT.encode, "cell", SQUARE & ~block(12, 16, 12, 15)),
    "MIT LabelMe": ("a.xml", MIT.encode, "car", SQUARE),
    "VIA": ("via.json", via, "dust", block(40, 44, 30, 35)),
    "QuPath": (
        "a.geojson",
        lambda: as_json([qupath({"name": "cell"})]),
        "cell",
        block(10, 30, 10, 30) & ~block(15, 20, 15, 20),
    ),
    "ilastik": ("a.ilp", ilastik, "Cell", block(7, 9, 9, 12)),
    "ImageJ": ("a.roi", roi, "Object", SQUARE),
    "COCO panoptic": ("a.json", lambda: as_json(panoptic()[0]), "sky", block(30, 40, 30, 50)),
}
READERS = {  # of `engine.datasets.annotations.reading`
    "read_coco": "COCO",
    "read_panoptic": "COCO panoptic",
    "read_labelme": "labelme",
    "read_mit_labelme": "MIT LabelMe",
    "read_cvat": "CVAT",
    "read_via": "VIA",
    "read_via_table": "VIA",
    "read_geojson": "QuPath",
}


def names(listed: list[str]) -> list[str]:
    """Return the programs of a list without what it says of their files."""
    return [re.sub(r"(?:’s|'s)? ROIs.*| project.*", "", name).strip() for name in listed]


def help_of_masks() -> str:
    shown = subprocess.run(
        [sys.executable, "-m", "engine", "segment", "train", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return " ".join(shown.stdout.split())


def between(shown: str, pattern: str) -> list[str]:
    found = re.search(pattern, shown)
    assert found, pattern
    return [word for word in re.split(r", | or | and ", found[1]) if word]


def refusal(content: bytes) -> str:
    with pytest.raises(InvalidProblemError) as refused:
        read_annotations(content, "a.json")
    return re.sub(r"\([^)]*\)", "", str(refused.value))


LISTS: dict[str, Callable[[], list[str]]] = {
    "upload": lambda: words(
        "templates/segmentation/image_set.html", r"outlines of (COCO.*?) are painted"
    ),
    "guide": lambda: words("docs/guides/pictures-to-counts.md", r"\| (COCO[^|]*) \| outlines"),
    "option": lambda: between(help_of_masks(), r"annotation files \((COCO.*?)\)"),
    "message about JSON": lambda: between(refusal(b'{"x": 1}'), r"read here: (.*?) ?\. "),
    "message about XML": lambda: between(refusal(b"<x/>"), r"read here: (.*?) ?\. "),
}


def read(name: str) -> list[Annotation]:
    file, build, _, _ = WRITERS[name]
    maps = {"a.png": panoptic()[1]}
    if name in ("ilastik", "ImageJ"):
        return list(read_annotation_file(build(), file, {"a.png"}))
    return read_annotations(build(), file, find_map=maps.get)


@pytest.mark.parametrize("name", WRITERS)
def test_what_the_program_writes_is_read_where_it_lies(name: str) -> None:
    _, _, label, place = WRITERS[name]
    found = [painted(one)[label] for one in read(name) if label in painted(one)]
    assert len(found) == 1
    assert np.array_equal(found[0], place)


@pytest.mark.parametrize("listed", LISTS)
def test_every_program_of_the_list_has_a_reader(listed: str) -> None:
    found = names(LISTS[listed]())
    assert len(found) >= 2
    assert set(found) <= set(WRITERS)


@pytest.mark.parametrize("listed", ["upload", "guide", "option"])
def test_the_lists_for_people_name_the_same_programs(listed: str) -> None:
    assert set(names(LISTS[listed]())) == set(WRITERS) - {"COCO panoptic", "MIT LabelMe"}


def test_every_reader_is_named_in_the_table_of_formats() -> None:
    readers = {
        name for name in vars(reading) if re.fullmatch(r"read_(?!json|annotations)\w+", name)
    }
    assert readers == set(READERS)
    table = text("docs/segmentation.md")
    rows = table[table.index("## Masks and annotations") : table.index("## Painting")]
    for program in {*READERS.values(), *WRITERS}:
        assert re.search(rf"\b{program}\b", rows), program


def test_the_table_refuses_what_it_says_is_refused() -> None:
    assert "VOC's boxes, VIA 3, Label Studio, Supervisely, results of COCO" in text(
        "docs/segmentation.md"
    )
    voc = b"<annotation><filename>a.png</filename><object><bndbox/></object></annotation>"
    via_3 = {"project": {"pid": "x"}, "config": {}, "attribute": {}, "file": {}, "metadata": {},
             "view": {}}  # fmt: skip
    results = [{"image_id": 1, "category_id": 1, "segmentation": {"size": [64, 64], "counts": "x"}}]
    for content, program in (
        (voc, "VOC"),
        (as_json(via_3), "VIA 3"),
        (as_json([{"id": 1, "data": {"image": "a.png"}, "annotations": []}]), "Label Studio"),
        (as_json({"description": "", "size": SIZE, "objects": []}), "Supervisely"),
        (as_json(results), "results of COCO"),
    ):
        assert program in refusal(content)


def test_every_ending_of_annotations_has_a_writer() -> None:
    endings = {Path(file).suffix for file, *_ in WRITERS.values()}
    assert ANNOTATION_ENDINGS - endings == {".csv"}  # VIA's table, `test_regions_of_via`
