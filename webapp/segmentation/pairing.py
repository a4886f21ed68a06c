"""Which file is a mask, and of which image: decided by name, corrected by people.

``NAME.mask.png`` (also ``NAME_mask.png``, ``NAME-mask.png``) is the mask of ``NAME.*``. A
``NAME.png`` that looks like a mask, beside ``NAME.jpg``, is its mask as well. Proportions must
agree. What a person has set by hand is never changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

MASK_ENDINGS = (".mask", "_mask", "-mask")
LOSSLESS_SUFFIXES = {".png", ".tif", ".tiff", ".bmp", ".gif"}


@dataclass(frozen=True, slots=True)
class PairingFile:
    """What pairing needs to know of a file.

    ``size`` is width and height in pixels. ``mask_like`` says that its pixels read as a mask.
    ``fixed_role`` and ``fixed_image`` hold what a person decided; ``fixed`` that the partner is not
    to be guessed.
    """

    key: int
    name: str
    size: tuple[int, int]
    mask_like: bool
    fixed_role: str | None = None
    fixed: bool = False
    fixed_image: int | None = None


@dataclass(frozen=True, slots=True)
class Pairing:
    """The role of every file and the image of every paired mask, by key; problems in words."""

    roles: dict[int, str]
    image_of: dict[int, int]
    problems: dict[int, str]


def mask_stem(name: str) -> str | None:
    """Return the stem of the image a mask's name points to, or None for other names."""
    stem = PurePosixPath(name).stem.casefold()
    for ending in MASK_ENDINGS:
        if stem.endswith(ending) and len(stem) > len(ending):
            return stem.removesuffix(ending)
    return None


def pair_by_name(files: Iterable[PairingFile]) -> Pairing:
    """Decide roles and partners for the files of one set."""
    ordered = sorted(files, key=lambda file: (file.name.casefold(), file.key))
    roles = _roles(ordered)
    images: dict[str, PairingFile] = {}
    for file in ordered:
        if roles[file.key] == "image":
            images.setdefault(PurePosixPath(file.name).stem.casefold(), file)
    image_of, problems = _fixed_pairs(ordered, roles), {}
    taken = set(image_of.values())
    for file in ordered:
        if roles[file.key] != "mask" or file.fixed:
            continue
        stem = mask_stem(file.name) or PurePosixPath(file.name).stem.casefold()
        image = images.get(stem)
        if image is None:
            problems[file.key] = f"No image is named {stem}."
        elif image.key in taken:
            problems[file.key] = f"{image.name} has another mask."
        elif not file.mask_like:
            problems[file.key] = "Named like a mask, but most of it is neither dark nor light."
        elif not same_proportions(file.size, image.size):
            problems[file.key] = size_problem(file.size, image.name, image.size)
        else:
            image_of[file.key] = image.key
            taken.add(image.key)
    return Pairing(roles, image_of, problems)


def same_proportions(mask: tuple[int, int], image: tuple[int, int]) -> bool:
    """Whether a mask may be a smaller or larger copy of its image's frame (2 %, one pixel)."""
    slack = max(0.02 * mask[1] * image[0], image[0], image[1])
    return mask == image or abs(mask[1] * image[0] - mask[0] * image[1]) <= slack


def size_problem(mask: tuple[int, int], image_name: str, image: tuple[int, int]) -> str:
    """Say that a mask has another size than its image."""
    return f"The mask is {mask[0]} × {mask[1]} pixels, but {image_name} is {image[0]} × {image[1]}."


def _roles(files: list[PairingFile]) -> dict[int, str]:
    lossy_stems = {
        PurePosixPath(file.name).stem.casefold()
        for file in files
        if PurePosixPath(file.name).suffix.casefold() not in LOSSLESS_SUFFIXES
        and file.fixed_role != "mask"
    }
    roles = {}
    for file in files:
        path = PurePosixPath(file.name)
        beside = path.stem.casefold() in lossy_stems
        lossless = path.suffix.casefold() in LOSSLESS_SUFFIXES
        by_name = mask_stem(file.name) is not None or (lossless and beside and file.mask_like)
        roles[file.key] = file.fixed_role or ("mask" if by_name else "image")
    return roles


def _fixed_pairs(files: list[PairingFile], roles: dict[int, str]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    for file in files:
        wanted = file.fixed_image
        if file.fixed and wanted is not None and roles.get(wanted) == "image":
            pairs[file.key] = wanted
    return pairs
