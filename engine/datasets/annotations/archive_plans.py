"""Classification of the files of an archive: images, label maps, tables, objects."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.archive import ArchiveEntry, ArchivePictures, display_name
from engine.datasets.annotations.label_tables import (
    LabelTable,
    is_label_table,
    read_label_table,
)
from engine.datasets.annotations.object_masks import numbered_stem
from engine.datasets.annotations.panoptic import is_panoptic, panoptic_maps
from engine.datasets.annotations.pictures import is_annotation
from engine.datasets.annotations.reading import MOST_BYTES
from engine.datasets.image_names import (
    EXTENSIONS,
    MASK_FOLDERS,
    map_stem,
    mask_stem,
    picture_stem,
)

Read = Callable[[ArchiveEntry], bytes]


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """Files of an archive by the way they are imported.

    Parameters
    ----------
    files : images, masks, maps and annotations, each imported by itself
    refused, left_out : entries with their reasons
    object_masks : masks of one object each, by the name of their image
    pictures : finds the images that annotations refer to
    tables : tables of classes by folder
    segments : PNG files of COCO panoptic, by the last part of their paths
    """

    files: list[ArchiveEntry]
    refused: list[ArchiveEntry]
    left_out: list[ArchiveEntry]
    object_masks: dict[str, list[ArchiveEntry]]
    pictures: ArchivePictures
    tables: dict[PurePosixPath, LabelTable] = field(default_factory=dict)
    segments: dict[str, list[ArchiveEntry]] = field(default_factory=dict)

    def table_of(self, entry: ArchiveEntry) -> LabelTable | None:
        """Return the table of classes in the nearest folder above a file, or the only one."""
        for folder in PurePosixPath(entry.path).parents:
            if folder in self.tables:
                return self.tables[folder]
        return next(iter(self.tables.values())) if len(self.tables) == 1 else None

    def is_label_map(self, entry: ArchiveEntry) -> bool:
        """Return True if a file is named as a map of classes and has a table of classes."""
        is_map = mask_stem(entry.name) is not None
        return is_map and self.table_of(entry) is not None

    def find_map(self, path: str, *, read: Read, about: str) -> bytes | None:
        """Return the PNG of this name with COCO panoptic segments; None if there is none."""
        entries = self.segments.get(PurePosixPath(path).name.casefold(), [])
        if not entries:
            return None
        by_path = ArchivePictures({entry.path: entry.path for entry in entries})
        found = by_path.find(path, about)
        return next((read(entry) for entry in entries if entry.path == found), None)


def plan_archive(entries: Sequence[ArchiveEntry], read: Read) -> ArchivePlan:
    """Return the plan for the files of an archive; tables and small JSON files are read."""
    refused = [entry for entry in entries if entry.refusal]
    left_out = [entry for entry in entries if entry.left_out]
    files = [entry for entry in entries if not entry.refusal and not entry.left_out]
    segments = _segments(files, read)
    files = [entry for entry in files if not _is_in(entry, segments)]
    pictures = [entry for entry in files if _is_picture(entry)]
    objects = _object_masks(files, pictures)
    joined = {id(entry) for masks in objects.values() for entry in masks}
    tables = {}
    for entry in left_out:
        if is_label_table(entry.path) and (table := _table(entry, read)):
            tables[PurePosixPath(entry.path).parent] = table
    return ArchivePlan(
        files=[entry for entry in files if id(entry) not in joined],
        refused=refused,
        left_out=left_out,
        object_masks=objects,
        pictures=ArchivePictures({one.path: one.name for one in pictures if id(one) not in joined}),
        tables=tables,
        segments=segments,
    )


def _is_picture(entry: ArchiveEntry) -> bool:
    """Return True if a file is an image by its name and folder, neither a mask nor a map."""
    is_of_another = mask_stem(entry.name) is not None or map_stem(entry.name) is not None
    ending = PurePosixPath(entry.path).suffix.casefold()
    return not is_of_another and ending in EXTENSIONS and not is_annotation(entry.name)


def _table(entry: ArchiveEntry, read: Read) -> LabelTable | None:
    try:
        return read_label_table(read(entry), entry.path)
    except InvalidProblemError:
        return None


def _segments(files: Sequence[ArchiveEntry], read: Read) -> dict[str, list[ArchiveEntry]]:
    """Return the PNG files that a JSON of COCO panoptic names."""
    named: set[str] = set()
    for entry in files:
        is_small = entry.info.file_size <= MOST_BYTES
        if entry.path.casefold().endswith(".json") and is_small:
            named |= _maps_named(entry, read)
    found: dict[str, list[ArchiveEntry]] = {}
    for entry in files:
        key = PurePosixPath(entry.path).name.casefold()
        if key in named and key.endswith(".png"):
            found.setdefault(key, []).append(entry)
    return found


def _maps_named(entry: ArchiveEntry, read: Read) -> set[str]:
    try:
        content = read(entry)
        if b'"segments_info"' not in content:
            return set()
        tree = json.loads(content)
        names = panoptic_maps(tree) if is_panoptic(tree) else []
    except (InvalidProblemError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return set()  # reported when the file itself is read
    return {PurePosixPath(name).name.casefold() for name in names}


def _is_in(entry: ArchiveEntry, segments: dict[str, list[ArchiveEntry]]) -> bool:
    return any(entry is one for one in segments.get(PurePosixPath(entry.path).name.casefold(), []))


def _object_masks(
    files: Sequence[ArchiveEntry], pictures: Sequence[ArchiveEntry]
) -> dict[str, list[ArchiveEntry]]:
    """Return masks of one object each: numbered after their image, or in a folder beside it."""
    by_stem = {picture_stem(one.name): one.name for one in pictures}
    alone = _alone_in_folder(pictures)
    found: dict[str, list[ArchiveEntry]] = {}
    for entry in files:
        if PurePosixPath(entry.path).suffix.casefold() not in EXTENSIONS:
            continue
        named = numbered_stem(display_name(PurePosixPath(entry.path).name))
        own = mask_stem(entry.name) or picture_stem(entry.name)
        if own in by_stem and named is None:
            continue  # a mask of all objects
        parent = PurePosixPath(entry.path).parent
        if named in by_stem and picture_stem(entry.name) != named:
            found.setdefault(by_stem[named], []).append(entry)
        elif parent.name.casefold() in MASK_FOLDERS:
            picture = alone.get(parent.parent, "")
            if picture and picture_stem(picture) == parent.parent.name.casefold():
                found.setdefault(picture, []).append(entry)
    return found


def _alone_in_folder(pictures: Sequence[ArchiveEntry]) -> dict[PurePosixPath, str]:
    """Return the folders with only one image, directly or in a subfolder, and its name."""
    counts: dict[PurePosixPath, list[str]] = {}
    for one in pictures:
        parent = PurePosixPath(one.path).parent
        if parent.name.casefold() in MASK_FOLDERS:
            continue
        for folder in {parent, parent.parent}:
            counts.setdefault(folder, []).append(one.name)
    return {folder: names[0] for folder, names in counts.items() if len(names) == 1}
