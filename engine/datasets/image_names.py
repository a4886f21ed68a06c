"""What a file's name says: a picture's format, and whose mask it is."""

import unicodedata
from collections.abc import Container
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
ILASTIK_MAP = "simple segmentation"
OBJECT_WORDS = ("instances", "cp_masks")
"""Words of masks whose numbers are of objects, however few; the second is Cellpose's."""

_MASK_WORDS = (
    *("mask", "masks", "seg", "segmentation", "label", "labels", "labelled", "labeled", "gt"),
    *("groundtruth", "ground_truth", "annotation", "annotations", "binary", ILASTIK_MAP),
    *OBJECT_WORDS,
)
MASK_SUFFIXES = tuple(
    f"{separator}{word}"
    for word in sorted(_MASK_WORDS, key=len, reverse=True)  # a_cp_masks is not of a picture a_cp
    for separator in "._-"
)
"""What other programs put behind a picture's name to name its mask."""

MASK_PREFIXES = (
    *(f"{word}{sign}" for word in ("mask", "label", "labels", "seg", "gt") for sign in "._-"),
    "mask of ",
)
"""What other programs put before it; pictures may begin so too."""

_MAP_WORDS = ("probabilities", "probability", "probs", "prob")
_MAP_SUFFIXES = tuple(f"{separator}{word}" for word in _MAP_WORDS for separator in "._-")
MAP_ENDINGS = (".npy", ".tif", ".tiff")
"""Endings of files that hold probabilities of another program."""

_PICTURE_PREFIXES = ("", "image_", "img_", "image-", "img-")
_FIRST_CHANNEL = "_0000"

MASK_FOLDERS = frozenset(
    {
        *("mask", "masks", "label", "labels", "seg", "segmentation", "segmentations"),
        *("annotation", "annotations", "groundtruth", "ground_truth", "gt", "labelstr", "labelsts"),
        *("segmentationclass", "segmentationobject", "instances"),
    }
)
"""Folders whose pictures are masks of those of the same names elsewhere; in lower case."""


MAP_FOLDERS = frozenset({"maps", *_MAP_WORDS})
"""Folders whose files are probabilities of the pictures of the same names elsewhere."""


def picture_stem(name: str) -> str:
    """Return what names of a picture and of its mask share: "leaf" of "Leaf.JPG".

    Letters with accents are one sign or two, depending on the system that wrote the name.
    """
    return unicodedata.normalize("NFC", PurePath(name).stem).casefold()


def picture_stems(name: str) -> tuple[str, ...]:
    """Return the stems by which masks may name a picture: nnU-Net numbers its channels too.

    Examples
    --------
    >>> picture_stems("a.png"), picture_stems("a_0000.png")
    (('a',), ('a_0000', 'a'))
    """
    stem = picture_stem(name)
    shorter = stem.removesuffix(_FIRST_CHANNEL)
    return (stem,) if shorter in ("", stem) else (stem, shorter)


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


def map_stem(name: str) -> str | None:
    """Return the stem of the picture whose probabilities a file's name says it holds, or None.

    Examples
    --------
    >>> map_stem("Leaf_Probabilities.tif"), map_stem("leaf.prob.npy"), map_stem("leaf_prob.png")
    ('leaf', 'leaf', None)
    """
    if PurePath(name).suffix.casefold() not in MAP_ENDINGS:
        return None
    stem = picture_stem(name)
    named = (stem.removesuffix(suffix) for suffix in _MAP_SUFFIXES if stem.endswith(suffix))
    return next((one for one in named if one), None)


def prefixed_stem(name: str, stems: Container[str]) -> str | None:
    """Return which of some pictures a name like mask_a.png points to; None if to none of them.

    Examples
    --------
    >>> prefixed_stem("mask_1.png", {"image_1"}), prefixed_stem("Mask of a.tif", {"a"})
    ('image_1', 'a')
    >>> prefixed_stem("mask_1.png", {"mask_1"}) is None
    True
    """
    own = mask_stem(name) or picture_stem(name)
    rests = (own.removeprefix(prefix) for prefix in MASK_PREFIXES if own.startswith(prefix))
    named = (f"{prefix}{rest}" for rest in rests for prefix in _PICTURE_PREFIXES)
    return next((stem for stem in named if stem in stems and stem != own), None)


def numbers_objects(name: str) -> bool:
    """Whether a mask's name says that its numbers are of objects: a_instances.tif, a_cp_masks.png.

    Examples
    --------
    >>> numbers_objects("a_instances.tif"), numbers_objects("instances.tif")
    (True, False)
    """
    ending = picture_stem(name).removesuffix(MASK_SUFFIX)
    return any(ending.endswith(f"{sign}{word}") for word in OBJECT_WORDS for sign in "._-")


def name_in_set(path: str) -> str:
    """Return the name that a file of an archive has in one folder for all.

    What lies in a folder of masks, or of probabilities, is named as what it is, or it would take
    the place of its own picture.

    Examples
    --------
    >>> name_in_set("images/a.png"), name_in_set("masks/a.png"), name_in_set("Masks/a_mask.png")
    ('a.png', 'a.mask.png', 'a_mask.png')
    >>> name_in_set("maps/a.npy")
    'a.probabilities.npy'
    """
    *folders, name = path.replace("\\", "/").split("/")
    lower = {folder.casefold() for folder in folders}
    pure = PurePath(name)
    if lower & MAP_FOLDERS and pure.suffix.casefold() in MAP_ENDINGS:
        return name if map_stem(name) else f"{pure.stem}{_MAP_SUFFIXES[0]}{pure.suffix}"
    is_mask = not lower.isdisjoint(MASK_FOLDERS)
    is_picture = pure.suffix.casefold() in {*EXTENSIONS, ".npy"}
    if not is_mask or not is_picture or mask_stem(name) is not None:
        return name
    return f"{pure.stem}{MASK_SUFFIX}{pure.suffix}"


def is_lossy(name: str) -> bool:
    """Whether a name's ending is that of photographs; such a file is no mask of another."""
    return PurePath(name).suffix.casefold() in LOSSY_EXTENSIONS
