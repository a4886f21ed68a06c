"""What a file's name says: a picture's format, and whose mask it is."""

from pathlib import PurePath

LOSSY_EXTENSIONS = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".webp"})
EXTENSIONS = LOSSY_EXTENSIONS | {
    *(".png", ".bmp", ".tif", ".tiff", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
}
"""Endings of the formats that can be read."""

MASK_SUFFIX = ".mask"
MASK_SUFFIXES = (MASK_SUFFIX, "_mask", "-mask")


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


def is_lossy(name: str) -> bool:
    """Whether a name's ending is that of photographs; such a file is no mask of another."""
    return PurePath(name).suffix.casefold() in LOSSY_EXTENSIONS
