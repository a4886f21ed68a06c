"""Annotations of a folder's pictures: outlines of any program as labels of pixels."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES, UNKNOWN, ClassLabels
from engine.datasets.annotations.archive import (
    ArchiveEntry,
    archive_entries,
    entry_chunks,
    open_archive,
)
from engine.datasets.annotations.archive_plans import ArchivePlan, plan_archive
from engine.datasets.annotations.pictures import (
    annotations_by_picture,
    is_annotation,
    named_classes,
    read_annotation_file,
)
from engine.datasets.annotations.raster import (
    LARGEST_RADIUS,
    MOST_STROKES,
    checked_geometry,
    paint_strokes,
)
from engine.datasets.annotations.reading import MOST_BYTES
from engine.datasets.annotations.shapes import Annotation, Shape
from engine.datasets.image_names import mask_stem, picture_stem

ZIP_ENDING = ".zip"
_IN_A_ZIP = "is a mask in {}, from which annotations alone are read; unpack it into a folder."
SizeOf = Callable[[str], tuple[int, int]]
ByPicture = list[tuple[str, Annotation]]


@dataclass(frozen=True, slots=True)
class OutlinedPictures:
    """Outlines on pictures, as annotation files hold them.

    Parameters
    ----------
    classes : names of the classes, in the order in which they appear
    shapes : shapes by the name of their picture; later ones lie above earlier ones
    left_out : names and reasons of the files that cannot be used
    """

    classes: tuple[str, ...]
    shapes: Mapping[str, tuple[Shape, ...]]
    left_out: tuple[tuple[str, str], ...]

    def labels(self, picture: str, size: tuple[int, int], classes: Sequence[str]) -> ClassLabels:
        """Return the label of every pixel by its class in ``classes``; without one it is unknown.

        Parameters
        ----------
        picture : name of the picture
        size : its width and height
        classes : names of at most 32 classes, whose case does not matter
        """
        places = {name.casefold(): place for place, name in enumerate(classes)}
        values = {name.casefold(): k for k, name in enumerate(self.classes, start=1)}
        strokes = [
            shape.stroke(0 if shape.name is None else values[shape.name.casefold()])
            for shape in self.shapes[picture]
        ]
        label_of = np.full(len(values) + 1, UNKNOWN, dtype=np.uint8)
        for name, value in values.items():
            label_of[value] = places.get(name, UNKNOWN)
        return np.asarray(label_of[paint_strokes(strokes, size, 1)])


def read_outlines(
    sources: Sequence[Path], pictures: Collection[str], size_of: SizeOf
) -> OutlinedPictures:
    """Read annotation files, and ZIPs of them, for the pictures of a folder.

    A file that cannot be used is left out as a whole, with its reason.

    Parameters
    ----------
    sources : the files
    pictures : names of the pictures that are there
    size_of : returns the width and height of a picture by its name

    Raises
    ------
    InvalidProblemError
        If no file can be used, or they name more than 32 classes.
    """
    found: ByPicture = []
    left_out: list[tuple[str, str]] = []
    sizes = cache(size_of)
    for path in sources:
        reader = _of_archive if path.suffix.casefold() == ZIP_ENDING else _of_file
        for name, read in reader(path, pictures, sizes):
            try:
                annotated = read()
                _check_strokes(found, annotated, sizes)
            except InvalidProblemError as error:
                left_out.append((name, str(error)))
                continue
            found += annotated
    if not found:
        name, reason = left_out[0]
        others = f" ({len(left_out) - 1} more files likewise)" if len(left_out) > 1 else ""
        said = (reason if name in reason else f"{name}: {reason}").rstrip(".")
        raise InvalidProblemError(
            f"No picture has a mask, and no outlines can be used: {said}{others}."
        )
    shapes: dict[str, tuple[Shape, ...]] = {}
    for picture, annotation in found:
        shapes[picture] = (*shapes.get(picture, ()), *annotation.shapes)
    classes = named_classes(annotation for _, annotation in found)
    if len(classes) > MOST_CLASSES:
        raise InvalidProblemError(
            f"The annotations name {len(classes)} classes; at most {MOST_CLASSES} are learned."
        )
    names = tuple(str(shape.name).strip() for shape in classes.values())
    return OutlinedPictures(names, shapes, tuple(left_out))


Read = Callable[[], ByPicture]


def _of_file(path: Path, pictures: Collection[str], sizes: SizeOf) -> Iterator[tuple[str, Read]]:
    def find_map(name: str) -> Path | None:
        beside = path.parent / Path(name.replace("\\", "/")).name
        return beside if beside.is_file() else None

    def read() -> ByPicture:
        annotations = read_annotation_file(_content(path), path.name, pictures, find_map=find_map)
        return annotations_by_picture(annotations, pictures, path.name, size_of=sizes)

    yield path.name, read


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidProblemError(f"{path.name} cannot be read: {error.strerror}.") from error
    if not content:
        raise InvalidProblemError(f"{path.name} is empty.")
    return content


def _of_archive(path: Path, pictures: Collection[str], sizes: SizeOf) -> Iterator[tuple[str, Read]]:
    """Yield the annotations of a ZIP; what else is of pictures in it is refused by name."""
    try:
        with path.open("rb") as file, open_archive(file) as archive:
            entries = archive_entries(archive)
            content = partial(_unpacked, archive)
            plan = plan_archive(entries, content)
            noted = [entry for entry in plan.files if is_annotation(entry.name)]
            for entry in plan.refused:
                yield entry.name or path.name, partial(_refuse, entry.refusal or "")
            for entry in noted:
                read = partial(_of_entry, plan, content, entry, path.name, pictures, sizes)
                yield entry.name, read
            masks = [entry for entry in plan.files if mask_stem(entry.name) is not None]
            masks += [entry for group in plan.object_masks.values() for entry in group]
            for entry in masks:
                yield entry.name, partial(_refuse, f"{entry.name} {_IN_A_ZIP.format(path.name)}")
            if not noted and not masks:
                yield path.name, partial(_refuse, f"{path.name} holds no annotations.")
    except InvalidProblemError as error:
        yield path.name, partial(_refuse, str(error))
    except OSError as error:
        yield path.name, partial(_refuse, f"{path.name} cannot be read: {error.strerror}.")


def _unpacked(archive: ZipFile, entry: ArchiveEntry) -> bytes:
    return b"".join(entry_chunks(archive, entry))


def _of_entry(
    plan: ArchivePlan,
    content: Callable[[ArchiveEntry], bytes],
    entry: ArchiveEntry,
    archive: str,
    pictures: Collection[str],
    sizes: SizeOf,
) -> ByPicture:
    stems = {picture_stem(picture) for picture in pictures}
    find = partial(plan.pictures.find, about=entry.path)
    annotations = read_annotation_file(
        content(entry),
        entry.name,
        pictures,
        archive=archive,
        is_picture=lambda path: picture_stem(path) in stems or find(path) is not None,
        find_map=partial(plan.find_map, read=content, about=entry.path),
    )
    return annotations_by_picture(annotations, pictures, entry.name, size_of=sizes, find=find)


def _refuse(sentence: str) -> ByPicture:
    raise InvalidProblemError(sentence)


def _check_strokes(earlier: ByPicture, annotated: ByPicture, sizes: SizeOf) -> None:
    """Refuse shapes that the painter does not take either, and shapes without a label."""
    named_classes(annotation for _, annotation in annotated)
    counts = Counter({picture: 0 for picture, _ in annotated})
    for picture, annotation in [*earlier, *annotated]:
        counts[picture] += len(annotation.shapes)
    for picture, annotation in annotated:
        if counts[picture] > MOST_STROKES:
            raise InvalidProblemError(f"An image takes {MOST_STROKES:,} strokes at most.")
        for shape in annotation.shapes:
            is_far = max(map(abs, shape.points), default=0.0) > 2 * LARGEST_RADIUS
            checked_geometry(shape.stroke(0), sizes(picture) if is_far else (1, 1))
