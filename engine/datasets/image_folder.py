"""Which file is a picture and which is its mask, told from the names in a folder."""

from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import InvalidProblemError
from engine.datasets.images import ByteImage, read_image
from engine.datasets.masks import MaskArray, match_mask, read_mask

EXTENSIONS = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"}
)
PHOTOGRAPH_EXTENSIONS = frozenset({".jpg", ".jpeg", ".webp"})
MASK_SUFFIX = ".mask"


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

    A mask is NAME.mask.png beside NAME.jpg, or carries the same NAME in the folder ``masks``
    (with or without ``.mask``). Without any of these, NAME.png beside a photograph NAME.jpg is
    taken for its mask. Hidden files, folders and files of other kinds are passed over.

    Raises
    ------
    InvalidProblemError
        If a folder does not exist, holds no pictures, or holds two pictures of one name.
    """
    files = _picture_files(folder)
    own_masks = {_stem(path): path for path in files if path.stem.endswith(MASK_SUFFIX)}
    pictures = [path for path in files if not path.stem.endswith(MASK_SUFFIX)]
    photographs = {path.stem for path in pictures if _is_photograph(path)}
    beside = {
        path.stem: path
        for path in pictures
        if path.suffix.lower() == ".png" and path.stem in photographs
    }
    pictures = [path for path in pictures if path not in beside.values()]
    elsewhere = _masks_of_folder(masks, folder, beside) if masks is not None else {}
    listed: dict[str, ImageFile] = {}
    for path in pictures:
        name = path.stem
        if name in listed:
            raise InvalidProblemError(
                f"{path.name} and {listed[name].image_path.name} have the same name; rename one."
            )
        found = elsewhere.get(name) or own_masks.get(name) or beside.get(name)
        listed[name] = ImageFile(name, path, found)
    if not listed:
        raise InvalidProblemError(f"{folder}: no pictures were found in this folder.")
    return tuple(listed[name] for name in sorted(listed))


def _masks_of_folder(masks: Path, folder: Path, beside: dict[str, Path]) -> dict[str, Path]:
    """Masks by name; in the pictures' own folder only those that are no pictures themselves."""
    if masks.resolve() == folder.resolve():
        return dict(beside)
    return {_stem(path): path for path in _picture_files(masks)}


def _picture_files(folder: Path) -> list[Path]:
    """Visible files of a picture's extension, sorted; symbolic links are not followed."""
    if not folder.is_dir():
        raise InvalidProblemError(f"{folder}: there is no such folder.")
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in EXTENSIONS
        and not path.name.startswith(".")
        and path.is_file()
        and not path.is_symlink()
    )


def _stem(path: Path) -> str:
    """NAME of NAME.png and of NAME.mask.png."""
    return path.stem.removesuffix(MASK_SUFFIX)


def _is_photograph(path: Path) -> bool:
    return path.suffix.lower() in PHOTOGRAPH_EXTENSIONS
