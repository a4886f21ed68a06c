"""Meaning of file names: the format of a picture, and the picture of a mask."""

import hashlib
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
    *(".czi", ".lif", ".nd2"),
}
"""File endings of readable formats."""

MASK_WORD = "mask"
MASK_SUFFIX = f".{MASK_WORD}"
ILASTIK_MAP = "simple segmentation"
OBJECT_WORDS = ("instances", "cp_masks")
"""Words in names of masks with numbered objects, however few; the second is Cellpose's."""
OBJECT_SUFFIX = ".objects"
"""Suffix of our own exports of numbered objects; a photograph may be called many_objects."""

_MASK_WORDS = (
    *("mask", "masks", "seg", "segmentation", "label", "labels", "labelled", "labeled", "gt"),
    *("groundtruth", "ground_truth", "annotation", "annotations", "binary", ILASTIK_MAP),
    *OBJECT_WORDS,
)
MASK_SUFFIXES = (
    *(
        f"{separator}{word}"
        for word in sorted(_MASK_WORDS, key=len, reverse=True)  # a_cp_masks belongs to a, not a_cp
        for separator in "._-"
    ),
    OBJECT_SUFFIX,
)
"""Suffixes that other programs add to a picture's name to name its mask."""

MASK_PREFIXES = (
    *(f"{word}{sign}" for word in ("mask", "label", "labels", "seg", "gt") for sign in "._-"),
    "mask of ",
)
"""Prefixes that other programs use for masks; names of pictures may begin so too."""

_MAP_WORDS = ("probabilities", "probability", "probs", "prob")
_MAP_SUFFIXES = tuple(f"{separator}{word}" for word in _MAP_WORDS for separator in "._-")
MAP_ENDINGS = (".npy", ".tif", ".tiff")
"""File endings of another program's probabilities."""

MOST_ENDING = 9
"""Letters of the longest file ending that is never shortened."""

_PICTURE_PREFIXES = ("", "image_", "img_", "image-", "img-")
_FIRST_CHANNEL = "_0000"

MASK_FOLDERS = frozenset(
    {
        *("mask", "masks", "label", "labels", "seg", "segmentation", "segmentations"),
        *("annotation", "annotations", "groundtruth", "ground_truth", "gt", "labelstr", "labelsts"),
        *("segmentationclass", "segmentationobject", "instances"),
    }
)
"""Folders, in lower case, with the masks of pictures of the same names elsewhere."""


MAP_FOLDERS = frozenset({"maps", *_MAP_WORDS})
"""Folders with probabilities for pictures of the same names elsewhere."""


def picture_stem(name: str) -> str:
    """Return the common stem of the names of a picture and its mask: "leaf" of "Leaf.JPG".

    An accented letter is one character or two, depending on the system that wrote the name.
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
    """Return the stem of the picture whose probabilities a file holds by its name, or None.

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
    """Return the stem among ``stems`` that a name like mask_a.png refers to; None if none.

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
    """Return True if a mask's name means numbered objects: a_instances.tif, a_cp_masks.png.

    Examples
    --------
    >>> numbers_objects("a_instances.tif"), numbers_objects("instances.tif")
    (True, False)
    """
    ending = picture_stem(name).removesuffix(MASK_SUFFIX)
    words = (f"{sign}{word}" for word in OBJECT_WORDS for sign in "._-")
    return ending.endswith((OBJECT_SUFFIX, *words))


def name_in_set(path: str) -> str:
    """Return the name of an archive's file when all files are in one folder.

    Files in folders of masks or probabilities get names of that kind, or they would replace their
    own picture.

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


def shortened(name: str, longest: int) -> str:
    """Return a name of at most ``longest`` letters that keeps its ending and its kind.

    Names that begin alike stay different, and a mask keeps the name of its picture: the part beyond
    the limit is replaced by a digest of the whole name.

    Examples
    --------
    >>> shortened("leaf.mask.png", 200)
    'leaf.mask.png'
    >>> long, other = "x" * 300, "x" * 301
    >>> [len(shortened(f"{stem}.mask.png", 60)) for stem in (long, other)]
    [40, 40]
    >>> shortened(f"{long}.png", 60) == shortened(f"{other}.png", 60)
    False
    >>> mask_stem(shortened(f"{long}.mask.png", 60)) == picture_stem(shortened(f"{long}.png", 60))
    True
    """
    if len(name) <= longest:
        return name
    pure = PurePath(name)
    ending = pure.suffix if len(pure.suffix) <= MOST_ENDING else ""
    stem = name.removesuffix(ending)
    lower = stem.casefold()
    word = next((one for one in MASK_SUFFIXES if lower.endswith(one) and len(lower) > len(one)), "")
    word = word or next((one for one in _MAP_SUFFIXES if lower.endswith(one)), "")
    own = stem[: len(stem) - len(word)] if word else stem
    mark = hashlib.sha256(picture_stem(f"{own}.png").encode()).hexdigest()[:12]
    room = longest - MOST_ENDING - max(len(one) for one in (*MASK_SUFFIXES, *_MAP_SUFFIXES))
    kept = own[: max(1, room - len(mark) - 1)]
    return f"{kept}~{mark}{stem[len(own) :]}{ending}"


def is_lossy(name: str) -> bool:
    """Return True if a name has the ending of a photograph; such a file is no mask of another."""
    return PurePath(name).suffix.casefold() in LOSSY_EXTENSIONS
