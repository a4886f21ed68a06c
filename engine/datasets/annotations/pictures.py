"""Pictures that annotations belong to: named beyond doubt, or refused."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.archive import display_name
from engine.datasets.annotations.ilastik import ENDING as ILASTIK_ENDING
from engine.datasets.annotations.ilastik import read_ilastik
from engine.datasets.annotations.imagej import read_roi
from engine.datasets.annotations.panoptic import FindMap
from engine.datasets.annotations.raster import FILL, reaches_into
from engine.datasets.annotations.reading import IsPicture, read_annotations
from engine.datasets.annotations.shapes import Annotation, Shape
from engine.datasets.image_names import mask_stem, picture_stem, picture_stems, prefixed_stem

ROI_ENDING = ".roi"
ANNOTATION_ENDINGS = frozenset({".json", ".geojson", ".xml", ".csv", ILASTIK_ENDING, ROI_ENDING})
_OF_A_MANAGER = "roiset"
_NUMBERED_ROI = re.compile(r"\d+(?:-\d+)+")

FindPicture = Callable[[str], str | None]
"""Function that returns the name of the picture that annotations refer to, or None."""


class NoPictureError(InvalidProblemError):
    """Refusal of annotations whose picture is not there; they may be read once it is."""


def is_annotation(name: str) -> bool:
    """Return True if a file name is that of annotations, which are read after all pictures."""
    return Path(name).suffix.casefold() in ANNOTATION_ENDINGS


def read_annotation_file(
    content: bytes,
    name: str,
    pictures: Collection[str],
    *,
    archive: str = "",
    beside: str = "",
    is_picture: IsPicture | None = None,
    find_map: FindMap = lambda path: None,
) -> list[Annotation]:
    """Return the annotations of a file of any program.

    Parameters
    ----------
    pictures : names of the pictures that are there
    archive : name of the ZIP that the file came in
    beside : name of the only picture that came with the file, for outlines that name none
    is_picture : returns True if a picture of this name is there, by default if it is in `pictures`
    find_map : returns the PNG with the segments of COCO panoptic, by name

    Raises
    ------
    InvalidProblemError
        If the file cannot be read or painted; NoPictureError if its picture is not there.
    """
    ending = Path(name).suffix.casefold()
    if ending == ROI_ENDING:
        annotations = [read_roi(content, name, picture_of_roi(pictures, name, archive, beside))]
    elif ending == ILASTIK_ENDING:
        annotations = read_ilastik(content, name)
    else:
        stems = {picture_stem(one) for one in pictures}
        is_there = is_picture or (lambda path: picture_stem(path) in stems)
        annotations = read_annotations(content, name, is_picture=is_there, find_map=find_map)
    for one in annotations:
        if not one.image:  # GeoJSON, which names no picture
            one.image = picture_of_roi(pictures, name, "", beside)
    return annotations


def picture_of_roi(pictures: Iterable[str], name: str, archive: str, beside: str = "") -> str:
    """Return the picture of an ImageJ ROI: that with its own name, or that of its ZIP.

    ImageJ numbers the ROIs of one picture, in a ZIP that people name after the picture:
    a.zip, a_rois.zip, RoiSet_a.zip. Without such a name it is the only picture there is, or the
    only one that came with it, ``beside``.

    Raises
    ------
    NoPictureError
        If no picture matches, or several do.
    """
    images = {picture_stem(image): image for image in pictures}
    stem = picture_stem(archive)
    for part in (_OF_A_MANAGER, "rois", "roi"):
        stem = stem.removesuffix(part).removeprefix(part).strip("_- .")
    for found in (
        images.get(picture_stem(name)),
        images.get(picture_stem(archive)),
        images.get(stem),
    ):
        if found:
            return found
    if _is_unnamed(name, archive, stem):
        if picture_stem(beside) in images:
            return images[picture_stem(beside)]
        if len(images) == 1:
            return next(iter(images.values()))
    ending = Path(name).suffix
    called = f"{archive} as a_rois.zip" if archive else f"{name} as a{ending}"
    raise NoPictureError(
        f"{name} does not say which picture it is of; name {called}, where the picture is a.png."
    )


def _is_unnamed(name: str, archive: str, rest: str) -> bool:
    """Return True if the name is one that ImageJ or QuPath proposes, which names no picture."""
    if archive:
        return not rest
    stem = picture_stem(name)
    is_numbered = bool(_NUMBERED_ROI.fullmatch(stem))
    return is_numbered or stem in {"roi", "rois", _OF_A_MANAGER, "export", "annotations", "objects"}


def annotations_by_picture(
    annotations: Iterable[Annotation],
    pictures: Collection[str],
    name: str,
    *,
    size_of: Callable[[str], tuple[int, int]],
    find: FindPicture = lambda reference: None,
) -> list[tuple[str, Annotation]]:
    """Return the annotations of a file with the name of their picture, all or none.

    Parameters
    ----------
    pictures : names of the pictures that are there
    name : name of the file with the annotations
    size_of : returns the width and height of a picture by its name
    find : finds pictures by their paths in the archive that the annotations came in

    Raises
    ------
    InvalidProblemError
        If nothing is annotated, a picture has another size, an outline covers no pixel of its
        picture, or two pictures of the file are one picture here; NoPictureError if a picture is
        not there.
    """
    annotations = [one for one in annotations if one.shapes]
    if not annotations:
        raise InvalidProblemError(f"{name} has no annotations. Nothing was saved.")
    by_name = {picture.casefold(): picture for picture in pictures}
    stems = _by_stem(pictures)
    found: list[tuple[str, Annotation]] = []
    meant: dict[str, str] = {}
    for annotation in annotations:
        known = find(annotation.image)
        picture = by_name.get(known.casefold()) if known else None
        picture = picture or _picture_of(annotation.image, by_name, stems)
        if picture is None:
            about = f"an image {_stem(name)}" if annotation.image == name else annotation.image
            raise NoPictureError(
                f"{name} is about {about}, which is not in this set. Add it first."
            )
        _check_size(annotation, picture, name, size_of)
        _check_places(annotation, picture, name, size_of(picture))
        if meant.setdefault(picture, annotation.image) != annotation.image:
            raise InvalidProblemError(
                f"{name} is about two images, {meant[picture]} and {annotation.image}, and nobody "
                f"can say which of them is {picture} of this set."
            )
        found.append((picture, annotation))
    return found


def named_classes(annotations: Iterable[Annotation]) -> dict[str, Shape]:
    """Return the first shape of every class by its name in lower case.

    Raises
    ------
    InvalidProblemError
        If a shape has no label.
    """
    found: dict[str, Shape] = {}
    for shape in (shape for one in annotations for shape in one.shapes):
        if shape.name is not None and not shape.name.strip():
            raise InvalidProblemError("A shape has no label. Name it where it was drawn.")
        if shape.name is not None:
            found.setdefault(shape.name.casefold(), shape)
    return found


def _by_stem(pictures: Iterable[str]) -> dict[str, str]:
    """Return pictures by the stems that annotations may use."""
    found: dict[str, str] = {}
    shorter: dict[str, str] = {}
    for picture in pictures:
        own, *others = picture_stems(picture)
        found[own] = picture
        shorter |= dict.fromkeys(others, picture)
    return shorter | found


def _picture_of(reference: str, by_name: Mapping[str, str], stems: Mapping[str, str]) -> str | None:
    """Return the picture that an annotation refers to, by its full name or its stem.

    A path may be that of a file in an archive, whose name then contains its folders.
    """
    parts = PurePosixPath(unicodedata.normalize("NFC", reference)).parts
    with_folders = [display_name("_".join(parts[k:])) for k in range(len(parts))]
    for name in with_folders:
        if found := by_name.get(name.casefold()):
            return found
    name = with_folders[-1] if with_folders else ""
    prefixed = prefixed_stem(name, stems)
    return stems.get(_stem(name)) or stems.get(prefixed or "")


def _stem(name: str) -> str:
    """Return the stem of a name's picture: "a" for a_labels.png and a_scribbles1.png."""
    stem = mask_stem(name) or picture_stem(name)
    head, _, tail = stem.rpartition("_")
    return head if head and tail.startswith("scribble") else stem


def _check_size(
    annotation: Annotation, picture: str, name: str, size_of: Callable[[str], tuple[int, int]]
) -> None:
    if annotation.size is None:
        return
    (wide, high), (width, height) = annotation.size, size_of(picture)
    if (wide, high) != (width, height):
        raise InvalidProblemError(
            f"{name}: {annotation.image} has {wide} x {high} pixels there, but {picture} has "
            f"{width} x {height} here."
        )


def _check_places(annotation: Annotation, picture: str, name: str, size: tuple[int, int]) -> None:
    """Refuse a shape that covers no pixel of its picture: it would be lost without a word."""
    for shape in annotation.shapes:
        stroke = shape.stroke(1)
        if reaches_into(stroke, size):
            continue
        what = "an area to ignore" if shape.name is None else f"an outline of {shape.name.strip()}"
        left, top = stroke["points"][1::-1] if shape.tool == FILL else stroke["points"][:2]
        raise InvalidProblemError(
            f"{name}: {what} at ({left:g}, {top:g}) lies outside {picture}, which has "
            f"{size[0]} x {size[1]} pixels."
        )
