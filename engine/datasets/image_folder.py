"""Which file is a picture and which is its mask, told from the names in a folder."""

from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import InvalidProblemError
from engine.datasets.image_names import EXTENSIONS, is_lossy, mask_stem, picture_stem
from engine.datasets.images import ByteImage, read_image
from engine.datasets.masks import MaskArray, match_mask, read_mask


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A picture, the name shared with its results, and its mask when there is one."""

    name: str
    image_path: Path
    mask_path: Path | None

    def read_image(self) -> ByteImage:
        """The picture, shape (height, width, 3); see `engine.datasets.images.read_image`."""
        return read_image(self.image_path)

    def read_mask(self, shape: tuple[int, int]) -> MaskArray:
        """The mask at the picture's size.

        Raises
        ------
        InvalidProblemError
            If there is no mask, it cannot be read, or it belongs to another picture.
        """
        if self.mask_path is None:
            raise InvalidProblemError(f"{self.image_path.name}: no mask was found for it.")
        return match_mask(read_mask(self.mask_path), shape, name=self.mask_path.name)


def list_images(folder: Path, masks: Path | None = None) -> tuple[ImageFile, ...]:
    """List the pictures of a folder with their masks, sorted by name.

    A mask is NAME.mask.png (also NAME_mask.png, NAME-mask.png) beside NAME.jpg, or carries the same
    NAME in the folder ``masks``, with or without ``.mask``. Without any of these, a lossless
    NAME.png beside a photograph NAME.jpg is taken for its mask. Case does not matter. Hidden files,
    folders and files of other kinds are passed over.

    Raises
    ------
    InvalidProblemError
        If a folder does not exist or holds no pictures, two pictures have one name, or a picture
        has two masks.
    """
    files = _picture_files(folder)
    photographs = {picture_stem(path.name) for path in files if is_lossy(path.name)}
    named, beside, others = [], [], []
    for path in files:
        if mask_stem(path.name) is not None:
            named.append(path)
        elif not is_lossy(path.name) and picture_stem(path.name) in photographs:
            beside.append(path)
        else:
            others.append(path)
    pictures = _by_stem(others, "pictures of one name")
    own, unnamed = _by_stem(named, "masks of one picture"), _by_stem(beside, "masks of one picture")
    elsewhere = {} if masks is None else _masks_of_folder(masks, folder)
    if not pictures:
        raise InvalidProblemError(_nothing_found(folder))
    listed = [
        ImageFile(path.stem, path, elsewhere.get(stem) or own.get(stem) or unnamed.get(stem))
        for stem, path in pictures.items()
    ]
    return tuple(sorted(listed, key=lambda file: file.name))


def _masks_of_folder(masks: Path, folder: Path) -> dict[str, Path]:
    """Masks by the stem of their pictures; none more in the pictures' own folder."""
    if masks.resolve() == folder.resolve():
        return {}
    return _by_stem(_picture_files(masks), "masks of one picture")


def _by_stem(paths: list[Path], what: str) -> dict[str, Path]:
    """Files by the stem that a picture shares with its mask; each only once."""
    found: dict[str, Path] = {}
    for path in paths:
        stem = mask_stem(path.name) or picture_stem(path.name)
        if stem in found:
            raise InvalidProblemError(
                f"{found[stem].name} and {path.name} are two {what}; rename or remove one."
            )
        found[stem] = path
    return found


def _picture_files(folder: Path) -> list[Path]:
    """Visible files of a picture's ending, sorted."""
    if not folder.is_dir():
        raise InvalidProblemError(f"{folder}: there is no such folder.")
    return sorted(path for path in _visible(folder) if path.suffix.casefold() in EXTENSIONS)


def _visible(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]


def _nothing_found(folder: Path) -> str:
    """One sentence that names the endings, and what was passed over for another ending."""
    endings = ", ".join(sorted(EXTENSIONS))
    names = (path.name for path in _visible(folder) if path.suffix.casefold() not in EXTENSIONS)
    other = sorted(names)
    passed = f"; passed over {len(other)}, such as {other[0]}" if other else ""
    return f"{folder}: no pictures were found in this folder (files ending in {endings}{passed})."
