"""Which file is a picture and which is its mask, told from the names in a folder."""

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
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
from engine.datasets.masks import MaskArray, match_mask, read_mask
from engine.datasets.picture_view import PictureView, read_deep, read_image, set_view

NUMPY_MASKS = ".npy"
"""Ending of masks that scripts leave; other arrays of a folder are no pictures but results."""

MOST_VIEWED = 24
"""Pictures of a set whose values say how all are shown."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A picture, the name shared with its results, and the files named as its mask: one at best.

    ``view`` says how it is shown where it is deep; by default by its own range. ``annotations`` is
    a JSON file beside it, its own or that of all.
    """

    name: str
    image_path: Path
    mask_paths: tuple[Path, ...]
    view: PictureView | None = None
    annotations: Path | None = None

    def read_image(self) -> ByteImage:
        """The picture, shape (height, width, 3); see `engine.datasets.picture_view.read_image`."""
        return read_image(self.image_path, view=self.view)

    @property
    def mask_path(self) -> Path:
        """The one file named as its mask.

        Raises
        ------
        InvalidProblemError
            If there is none or a second one.
        """
        if not self.mask_paths:
            instead = "."
            if self.annotations is not None:
                instead = (
                    f"; {self.annotations.name} is not read here: the pages take COCO and labelme,"
                    " or turn it into mask pictures."
                )
            raise InvalidProblemError(f"{self.image_path.name}: no mask was found for it{instead}")
        path, *others = self.mask_paths
        if others:
            raise InvalidProblemError(
                f"{path.name} and {others[0].name} are both masks of {self.image_path.name}; "
                "remove one."
            )
        return path

    def read_mask(self, shape: tuple[int, int]) -> MaskArray:
        """The mask at the picture's size.

        Raises
        ------
        InvalidProblemError
            If there is no mask or a second one, or it cannot be read or is of another picture.
        """
        path = self.mask_path
        return match_mask(read_mask(path), shape, name=path.name)


def list_images(folder: Path, masks: Path | None = None) -> tuple[ImageFile, ...]:
    """List the pictures of a folder with their masks, sorted by name.

    A mask is NAME.mask.png (also NAME_mask.png, NAME-mask.png) beside NAME.jpg, or carries the same
    NAME in the folder ``masks``, with or without ``.mask``. NAME_seg.png, NAME_labels.tif and other
    endings of `MASK_SUFFIXES` are masks too, where none is called so. Without any of these, a
    lossless NAME.png beside a photograph NAME.jpg is taken for its mask; mask_NAME.png is one where
    there is a picture of that NAME. Case does not matter. Hidden files, folders and files of other
    kinds are passed over.

    Raises
    ------
    InvalidProblemError
        If a folder does not exist, holds no pictures, or holds two pictures of one name.
    """
    pictures, named, beside = _tell_apart(_picture_files(folder, {*EXTENSIONS, NUMPY_MASKS}))
    if not pictures:
        raise InvalidProblemError(_nothing_found(folder))
    elsewhere = []
    if masks is not None and masks.resolve() != folder.resolve():
        elsewhere = _picture_files(masks, {*EXTENSIONS, NUMPY_MASKS})
    stems = {picture_stem(path.name) for path in pictures}
    choices = [_by_stem(paths, stems) for paths in (elsewhere, named, beside)]
    notes = sorted(path for path in _visible(folder) if path.suffix.casefold() == ".json")
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


def view_of_set(files: Sequence[ImageFile]) -> PictureView | None:
    """Return one view of the deep pictures among some files, from evenly chosen ones of these.

    None if there are none; what cannot be read, or holds no numbers, says nothing.
    """
    try:
        return set_view(_deep(files))
    except InvalidProblemError:
        return None


def _deep(files: Sequence[ImageFile]) -> Iterator[ImageStack]:
    """The numbers of evenly chosen deep pictures, one at a time."""
    for file in files[:: max(1, -(-len(files) // MOST_VIEWED))]:
        if is_large(file.image_path):
            continue
        try:
            stack = read_deep(file.image_path)
            if stack is not None:
                set_view([stack])  # a picture that has no view has no part in that of the set
                yield stack
        except InvalidProblemError:
            continue


def _tell_apart(files: list[Path]) -> tuple[list[Path], list[Path], list[Path]]:
    """Pictures, files named as masks, and lossless files beside a photograph of their name."""
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
    """Files by the stem that a picture shares with its mask; some name theirs by a prefix."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        own = picture_stem(path.name)
        prefixed = None if own in pictures else prefixed_stem(path.name, pictures)
        found.setdefault(mask_stem(path.name) or prefixed or own, []).append(path)
    return found


def _named_plainest(masks: list[Path]) -> list[Path]:
    """All but the maps of instances or labels beside a mask of the same picture."""
    plain = [
        path
        for path in masks
        if mask_stem(path.name) is None or MASK_WORD in picture_stem(path.name)
    ]
    return plain or masks


def _picture_files(folder: Path, endings: Container[str]) -> list[Path]:
    """Visible files of some endings, sorted."""
    if not folder.is_dir():
        raise InvalidProblemError(f"{folder}: there is no such folder.")
    return sorted(path for path in _visible(folder) if path.suffix.casefold() in endings)


def _visible(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]


def _nothing_found(folder: Path) -> str:
    """One sentence that names the endings, and what was passed over for another ending."""
    endings = ", ".join(sorted(EXTENSIONS))
    names = (path.name for path in _visible(folder) if path.suffix.casefold() not in EXTENSIONS)
    other = sorted(names)
    passed = f"; passed over {len(other)}, such as {other[0]}" if other else ""
    return f"{folder}: no pictures were found in this folder (files ending in {endings}{passed})."
