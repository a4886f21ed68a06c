"""What a file's name says: a picture's format, and whose mask it is."""

from pathlib import PurePath

LOSSY_EXTENSIONS = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".avif", ".heic", ".heif", ".hif"),
        *(".jp2", ".j2k", ".jpf", ".jpx"),
    }
)
EXTENSIONS = LOSSY_EXTENSIONS | {
    *(".png", ".bmp", ".tif", ".tiff", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
}
"""Endings of the formats that can be read."""

MASK_WORD = "mask"
MASK_SUFFIX = f".{MASK_WORD}"
MASK_SUFFIXES = tuple(
    f"{separator}{word}"
    for word in ("mask", "masks", "seg", "segmentation", "label", "labels", "instances", "gt")
    for separator in "._-"
)
"""What other programs put behind a picture's name to name its mask."""

MASK_FOLDERS = frozenset(
    {
        *("mask", "masks", "label", "labels", "seg", "segmentation", "segmentations"),
        *("annotation", "annotations", "groundtruth", "ground_truth", "gt", "labelstr", "labelsts"),
        *("segmentationclass", "segmentationobject", "instances"),
    }
)
"""Folders whose pictures are masks of those of the same names elsewhere; in lower case."""


def picture_stem(name: str) -> str:
    """Return what names of a picture and of its mask share: "leaf" of "Leaf.JPG"."""
    return PurePath(name).stem.casefold()


def mask_stem(name: str) -> str | None:
    """Return the stem of the picture a mask's name points to, or None for other names.

    Examples
    --------
    >>> mask_stem("Leaf.mask.png"), mask_stem("leaf_mask.png"), mask_stem("leaf.png")
    ('leaf', 'leaf', None)
    """
    stem = picture_stem(name)
    for suffix in MASK_SUFFIXES:
        if stem.endswith(suffix) and len(stem) > len(suffix):
            return stem.removesuffix(suffix)
    return None


def name_in_set(path: str) -> str:
    """Return the name that a file of an archive has in one folder for all.

    What lies in a folder of masks is named as the mask that it is, or it would take the place of
    its own picture.

    Examples
    --------
    >>> name_in_set("images/a.png"), name_in_set("masks/a.png"), name_in_set("Masks/a_mask.png")
    ('a.png', 'a.mask.png', 'a_mask.png')
    """
    *folders, name = path.replace("\\", "/").split("/")
    is_mask = any(folder.casefold() in MASK_FOLDERS for folder in folders)
    if not is_mask or mask_stem(name) is not None:
        return name
    return f"{PurePath(name).stem}{MASK_SUFFIX}{PurePath(name).suffix}"


def is_lossy(name: str) -> bool:
    """Whether a name's ending is that of photographs; such a file is no mask of another."""
    return PurePath(name).suffix.casefold() in LOSSY_EXTENSIONS
