"""Which file is a mask, and of which image: decided by name, corrected by people.

``NAME.mask.png`` (also ``NAME_mask.png``, ``NAME-mask.png``) is the mask of ``NAME.*``. A lossless
``NAME.png`` that looks like a mask, beside ``NAME.jpg``, is its mask as well. Proportions must
agree. What a person has paired stays as long as the two fit each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.datasets.image_names import is_lossy, mask_stem, picture_stem
from engine.datasets.masks import mask_fits

NO_MASK = "It cannot be read as a mask: white for what is to be found, black for all else."


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


def pair_by_name(files: Iterable[PairingFile]) -> Pairing:
    """Decide roles and partners for the files of one set."""
    ordered = sorted(files, key=lambda file: (file.name.casefold(), file.key))
    roles = _roles(ordered)
    images: dict[str, PairingFile] = {}
    for file in ordered:
        if roles[file.key] == "image":
            images.setdefault(picture_stem(file.name), file)
    image_of, problems = _fixed_pairs(ordered, roles)
    taken = set(image_of.values())
    for file in ordered:
        if roles[file.key] != "mask" or file.fixed:
            continue
        stem = mask_stem(file.name) or picture_stem(file.name)
        image = images.get(stem)
        if image is None:
            problems[file.key] = f"No image is named {stem}."
        elif image.key in taken:
            problems[file.key] = f"{image.name} has another mask."
        elif problem := pair_problem(file, image):
            problems[file.key] = problem
        else:
            image_of[file.key] = image.key
            taken.add(image.key)
    return Pairing(roles, image_of, problems)


def pair_problem(mask: PairingFile, image: PairingFile) -> str:
    """Say why a file cannot be the mask of an image; nothing if it can."""
    if not mask.mask_like:
        return NO_MASK
    (columns, rows), (width, height) = mask.size, image.size
    if not mask_fits((rows, columns), (height, width)):
        return f"The mask is {columns} × {rows} pixels, but {image.name} is {width} × {height}."
    return ""


def _roles(files: list[PairingFile]) -> dict[int, str]:
    photographs = {
        picture_stem(file.name)
        for file in files
        if is_lossy(file.name) and file.fixed_role != "mask"
    }
    roles = {}
    for file in files:
        beside = not is_lossy(file.name) and picture_stem(file.name) in photographs
        by_name = mask_stem(file.name) is not None or (beside and file.mask_like)
        roles[file.key] = file.fixed_role or ("mask" if by_name else "image")
    return roles


def _fixed_pairs(
    files: list[PairingFile], roles: dict[int, str]
) -> tuple[dict[int, int], dict[int, str]]:
    """The pairs that people made; a problem where one of the two was replaced since."""
    by_key = {file.key: file for file in files}
    pairs: dict[int, int] = {}
    problems: dict[int, str] = {}
    for file in files:
        image = by_key.get(file.fixed_image) if file.fixed_image is not None else None
        if not file.fixed or image is None or roles[image.key] != "image":
            continue
        if problem := pair_problem(file, image):
            problems[file.key] = problem
        else:
            pairs[file.key] = image.key
    return pairs, problems
