"""Reader of annotations of any program, which recognises the format by the content."""

from collections.abc import Callable, Iterable
from typing import Any

from engine.core.errors import InvalidProblemError
from engine.core.json_text import read_json
from engine.datasets.annotations.coco import is_coco, read_coco
from engine.datasets.annotations.cvat import is_cvat, read_cvat
from engine.datasets.annotations.labelme import (
    is_labelme,
    is_mit_labelme,
    read_labelme,
    read_mit_labelme,
)
from engine.datasets.annotations.panoptic import FindMap, is_panoptic, read_panoptic
from engine.datasets.annotations.qupath import is_geojson, read_geojson
from engine.datasets.annotations.shapes import Annotation, misfits_in_words
from engine.datasets.annotations.via import (
    is_via,
    is_via_3,
    is_via_table,
    read_via,
    read_via_table,
)

MOST_BYTES = 64 * 1024**2
_ENCODINGS = ("gb18030", "big5", "shift_jis", "euc_kr", "cp1252")
"""Encodings other than UTF-8; the first one is used in which the named images are known."""

IsPicture = Callable[[str], bool]


def read_annotations(
    content: bytes,
    name: str,
    *,
    is_picture: IsPicture = lambda path: False,
    find_map: FindMap = lambda path: None,
) -> list[Annotation]:
    """Return the annotations of a COCO, labelme, CVAT, MIT LabelMe, VIA or QuPath file.

    Parameters
    ----------
    is_picture : returns True if an image of this name is there; text that is not UTF-8 is read in
        the encoding in which the named image exists
    find_map : returns the PNG with the segments of COCO panoptic, by name

    Raises
    ------
    InvalidProblemError
        If another program wrote it, or it holds something that cannot be painted; the sentence
            says what, and which export to choose instead.
    """
    if len(content) > MOST_BYTES:
        raise InvalidProblemError(f"{name} is larger than {MOST_BYTES // 1024**2} MB.")
    head = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    with misfits_in_words(f"{name}: an entry"):
        if head == b"<":
            return list(_of_xml(content, name))
        if is_via_table(content):
            return list(read_via_table(content, name))
        return list(_of_json(content, name, is_picture, find_map))


def _of_json(
    content: bytes, name: str, is_picture: IsPicture, find_map: FindMap
) -> Iterable[Annotation]:
    try:
        tree = read_json(content)
    except UnicodeDecodeError:
        return _of_other_encoding(content, name, is_picture, find_map)
    except ValueError as error:
        raise InvalidProblemError(f"{name} is not whole JSON.") from error
    return _of_tree(tree, name, find_map)


def _of_other_encoding(
    content: bytes, name: str, is_picture: IsPicture, find_map: FindMap
) -> list[Annotation]:
    """Return the annotations in the first encoding in which all their images are known."""
    for encoding in _ENCODINGS:
        try:
            tree = read_json(content.decode(encoding).encode())
        except ValueError:
            continue
        found = list(_of_tree(tree, name, find_map))
        if found and all(is_picture(one.image) for one in found):
            return found
    raise InvalidProblemError(
        f"{name} is not in UTF-8, and in no other encoding it names a picture of this set. Save it "
        "as UTF-8, or name it after its picture."
    )


def _of_tree(tree: Any, name: str, find_map: FindMap) -> Iterable[Annotation]:
    if is_panoptic(tree):
        return read_panoptic(tree, name, find_map)
    if is_coco(tree):
        return read_coco(tree, name)
    if is_labelme(tree):
        return [read_labelme(tree, name)]
    if is_via(tree):
        return read_via(tree, name)
    if is_geojson(tree):
        return [read_geojson(tree, name)]
    raise InvalidProblemError(_not_read(tree, name))


def _not_read(tree: Any, name: str) -> str:
    """Return a sentence that names the program of a file and the format to export instead."""
    first = tree[0] if isinstance(tree, list) and tree else {}
    if isinstance(first, dict) and {"image_id", "segmentation"} & first.keys():
        return (
            f"{name} holds results of COCO without their images; give the file with images, "
            "categories and annotations."
        )
    if is_via_3(tree):
        return f"{name} is a project of VIA 3; export it as COCO (Project, Export)."
    if isinstance(first, dict) and {"data", "annotations"} <= first.keys():
        return f"{name} is of Label Studio; export it as COCO or as brush labels to PNG."
    if isinstance(tree, dict) and {"objects", "size"} <= tree.keys():
        return f"{name} is of Supervisely; export it as COCO."
    return (
        f"{name} is of no program that is read here: COCO, labelme, VIA or QuPath (GeoJSON). "
        "Export it as COCO."
    )


def _of_xml(content: bytes, name: str) -> Iterable[Annotation]:
    try:  # the engine alone reads JSON only; XML needs the extra "outlines"
        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import ParseError, fromstring
    except ImportError as error:
        raise InvalidProblemError(
            f"{name} is XML, which needs defusedxml: pip install 'bethe-hall[outlines]', or export "
            "it as COCO."
        ) from error
    try:
        root = fromstring(content, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError, RecursionError) as error:
        raise InvalidProblemError(f"{name} is not whole XML.") from error
    if is_cvat(root):
        return read_cvat(root, name)
    if is_mit_labelme(root):
        return [read_mit_labelme(root, name)]
    if root.tag == "annotation":
        raise InvalidProblemError(
            f"{name} is a VOC annotation, whose boxes have no outlines; give masks as PNG, or "
            "outlines as COCO or labelme."
        )
    raise InvalidProblemError(
        f"{name} is XML of no program that is read here: CVAT (1.1) or MIT LabelMe. Export it as "
        "COCO."
    )
