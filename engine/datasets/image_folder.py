"""Pictures of a folder and their masks, matched by file names."""

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.label_tables import is_label_table
from engine.datasets.annotations.pictures import is_annotation
from engine.datasets.image_names import (
    EXTENSIONS,
    MASK_WORD,
    is_lossy,
    mask_stem,
    picture_stem,
    picture_stems,
    prefixed_stem,
)
from engine.datasets.image_stacks import ImageStack
from engine.datasets.large_pictures import is_large
from engine.datasets.masks import MaskArray, MaskReading, match_mask, understand_mask
from engine.datasets.picture_view import PictureView, read_deep, read_image, set_view

NUMPY_MASKS = ".npy"
"""Ending of masks that scripts write; other arrays of a folder are results, not pictures."""

MOST_VIEWED = 24
"""Number of pictures whose values determine the view of a whole set."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A picture, the name shared with its results, and the files named as its mask: at most one.

    ``view`` is the view of a deep picture; by default it is shown by its own range.
    ``annotations`` is a file that may hold its outlines, its own or that of all.
    """

    name: str
    image_path: Path
    mask_paths: tuple[Path, ...]
    view: PictureView | None = None
    annotations: Path | None = None

    def read_image(self) -> ByteImage:
        """Return the picture, shape (height, width, 3); see `picture_view.read_image`."""
        return read_image(self.image_path, view=self.view)

    @property
    def mask_path(self) -> Path:
        """Return the one file named as its mask.

        Raises
        ------
        InvalidProblemError
            If there is none or a second one.
        """
        if not self.mask_paths:
            instead = "."
            if self.annotations is not None:
                instead = (
                    f"; outlines such as those of {self.annotations.name} are read only where no "
                    "picture has a mask."
                )
            raise InvalidProblemError(f"{self.image_path.name}: no mask was found for it{instead}")
        path, *others = self.mask_paths
        if others:
            raise InvalidProblemError(
                f"{path.name} and {others[0].name} are both masks of {self.image_path.name}; "
                "remove one."
            )
        return path

    def understand_mask(self) -> MaskReading:
        """Read the mask exactly as its file has it, and count its objects.

        Raises
        ------
        InvalidProblemError
            If there is no mask or a second one, or it cannot be read.
        """
        return understand_mask(self.mask_path)

    def read_mask(self, shape: tuple[int, int]) -> MaskArray:
        """Return the mask at the picture's size.

        Raises
        ------
        InvalidProblemError
            If there is no mask or a second one, or it cannot be read or belongs to another picture.
        """
        return match_mask(self.understand_mask().mask, shape, name=self.mask_path.name)


def list_images(folder: Path, masks: Path | None = None) -> tuple[ImageFile, ...]:
    """List the pictures of a folder with their masks, sorted by name.

    A mask is NAME.mask.png (also NAME_mask.png, NAME-mask.png) beside NAME.jpg, or carries the same
    NAME in the folder ``masks``, with or without ``.mask``. NAME_seg.png, NAME_labels.tif and other
    endings of `MASK_SUFFIXES` are masks too, if there is none of that form. Without any of these, a
    lossless NAME.png beside a photograph NAME.jpg is taken for its mask; mask_NAME.png is one if
    there is a picture of that NAME. Case does not matter. Hidden files, folders and files of other
    kinds are passed over.

    ``masks`` may also be one file of annotations or a ZIP of them; see `annotation_files`.

    Raises
    ------
    InvalidProblemError
        If a folder does not exist, holds no pictures, or holds two pictures of one name.
    """
    pictures, named, beside = _tell_apart(_picture_files(folder, {*EXTENSIONS, NUMPY_MASKS}))
    if not pictures:
        raise InvalidProblemError(_nothing_found(folder))
    elsewhere = []
    if masks is not None and not masks.is_file() and masks.resolve() != folder.resolve():
        elsewhere = _picture_files(masks, {*EXTENSIONS, NUMPY_MASKS})
    stems = {picture_stem(path.name) for path in pictures}
    choices = [_by_stem(paths, stems) for paths in (elsewhere, named, beside)]
    notes = annotation_files(folder, masks)
    own = {path.stem: path for path in notes}
    listed = []
    for path, *twins in _by_stem(pictures).values():
        if twins:
            raise InvalidProblemError(
                f"{path.name} and {twins[0].name} have the same name; rename one."
            )
        names = picture_stems(path.name)
        lists = (masks_of[name] for masks_of in choices for name in names if name in masks_of)
        found = next(lists, [])
        annotations = own.get(path.stem, notes[0] if notes else None)
        masks_found = tuple(_named_plainest(found))
        listed.append(ImageFile(path.stem, path, masks_found, annotations=annotations))
    return tuple(sorted(listed, key=lambda file: file.name))


def annotation_files(folder: Path, masks: Path | None = None) -> tuple[Path, ...]:
    """Return the files that may hold outlines on the pictures of a folder, sorted by name.

    They are ``masks`` itself if it is a file; otherwise the annotations and ZIPs in ``masks`` and
    beside the pictures.
    """
    if masks is not None and masks.is_file():
        return (masks,)
    folders = {one.resolve(): one for one in (folder, masks) if one is not None and one.is_dir()}
    found = (path for one in folders.values() for path in _visible(one))
    noted = (path for path in found if is_annotation(path.name) or path.suffix.casefold() == ".zip")
    return tuple(sorted(path for path in noted if not is_label_table(path.name)))


def view_of_set(files: Sequence[ImageFile]) -> PictureView | None:
    """Return one view for the deep pictures of some files, computed from an even sample of them.

    None if there are none; unreadable files and files without finite numbers are ignored.
    """
    try:
        return set_view(_deep(files))
    except InvalidProblemError:
        return None


def _deep(files: Sequence[ImageFile]) -> Iterator[ImageStack]:
    """Yield the numbers of an even sample of deep pictures, one at a time."""
    for file in files[:: max(1, -(-len(files) // MOST_VIEWED))]:
        if is_large(file.image_path):
            continue
        try:
            stack = read_deep(file.image_path)
            if stack is not None:
                set_view([stack])  # a picture without a view does not count for the view of the set
                yield stack
        except InvalidProblemError:
            continue


def _tell_apart(files: list[Path]) -> tuple[list[Path], list[Path], list[Path]]:
    """Return pictures, files named as masks, and lossless files named as a photograph."""
    photographs = {picture_stem(path.name) for path in files if is_lossy(path.name)}
    arrays = [path for path in files if path.suffix.casefold() == NUMPY_MASKS]
    others = {path.name for path in files if path not in arrays}
    stems = {picture_stem(name) for name in others if mask_stem(name) is None}
    pictures, named, beside = [], [], []
    for path in files:
        if mask_stem(path.name) is not None or prefixed_stem(path.name, stems) is not None:
            named.append(path)
        elif path in arrays:
            continue
        elif not is_lossy(path.name) and picture_stem(path.name) in photographs:
            beside.append(path)
        else:
            pictures.append(path)
    return pictures, named, beside


def _by_stem(paths: list[Path], pictures: Collection[str] = ()) -> dict[str, list[Path]]:
    """Return files by the stem that pictures and masks share; some mask names have a prefix."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        own = picture_stem(path.name)
        prefixed = None if own in pictures else prefixed_stem(path.name, pictures)
        found.setdefault(mask_stem(path.name) or prefixed or own, []).append(path)
    return found


def _named_plainest(masks: list[Path]) -> list[Path]:
    """Return all but the maps of instances or labels beside a mask of the same picture."""
    plain = [
        path
        for path in masks
        if mask_stem(path.name) is None or MASK_WORD in picture_stem(path.name)
    ]
    return plain or masks


def _picture_files(folder: Path, endings: Container[str]) -> list[Path]:
    """Return the visible files with some endings, sorted."""
    if not folder.is_dir():
        raise InvalidProblemError(f"{folder}: there is no such folder.")
    return sorted(path for path in _visible(folder) if path.suffix.casefold() in endings)


def _visible(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]


def _nothing_found(folder: Path) -> str:
    """Return one sentence that names the endings, and the files skipped for another ending."""
    endings = ", ".join(sorted(EXTENSIONS))
    names = (path.name for path in _visible(folder) if path.suffix.casefold() not in EXTENSIONS)
    other = sorted(names)
    passed = f"; passed over {len(other)}, such as {other[0]}" if other else ""
    return f"{folder}: no pictures were found in this folder (files ending in {endings}{passed})."
