"""Pairing of masks and probability maps with images, by name or by a person's choice.

``NAME.mask.png`` (also ``NAME_mask.png``, ``NAME-mask.png``, and ``mask_NAME.png`` where there is
such an image) is the mask of ``NAME.*``. A lossless
``NAME.png`` that looks like a mask, beside ``NAME.jpg``, is its mask as well. Proportions must
agree. A pair made by a person stays as long as the two fit each other. Probabilities,
``NAME_probabilities.npy``, belong to ``NAME.*`` by name alone.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.datasets.image_names import (
    is_lossy,
    map_stem,
    mask_stem,
    picture_stem,
    picture_stems,
    prefixed_stem,
)
from engine.datasets.masks import mask_fits
from webapp.translation.lazy import gettext_lazy

NO_MASK = gettext_lazy(
    "It cannot be read as a mask: white for what is to be found, black for all else."
)


@dataclass(frozen=True, slots=True)
class PairingFile:
    """Properties of a file that pairing uses.

    ``size`` is width and height in pixels. ``mask_like``: its pixels read as a mask; otherwise
    ``not_mask`` may give the reason.
    ``fixed_role`` and ``fixed_image`` are a person's choices; ``fixed``: the partner must not be
    guessed.
    """

    key: UUID
    name: str
    size: tuple[int, int]
    mask_like: bool
    not_mask: str = ""
    fixed_role: str | None = None
    fixed: bool = False
    fixed_image: UUID | None = None


@dataclass(frozen=True, slots=True)
class Pairing:
    """Role of every file, image of every paired mask and map, by key; problems in words."""

    roles: dict[UUID, str]
    image_of: dict[UUID, UUID]
    problems: dict[UUID, str]


def pair_by_name(files: Iterable[PairingFile]) -> Pairing:
    """Return roles and partners for the files of one set."""
    ordered = sorted(files, key=lambda file: (file.name.casefold(), file.key))
    roles = _roles(ordered)
    images = _by_stem(file for file in ordered if roles[file.key] == "image")
    image_of, problems = _fixed_pairs(ordered, roles)
    taken = set(image_of.values())
    for file in ordered:
        if roles[file.key] == "map" and (problem := _map_problem(file, images)):
            problems[file.key] = problem
        if roles[file.key] != "mask" or file.fixed:
            continue
        stem = _stem_of_image(file.name, images)
        named = _named_alike(file, images.get(stem, []))
        image = named[0] if len(named) == 1 else None
        if not named:
            problems[file.key] = _no_image_named(stem)
        elif image is None:
            problems[file.key] = ngettext(
                "%(count)s image has this name, %(image)s for one; pair it by hand.",
                "%(count)s images have this name, %(image)s for one; pair it by hand.",
                len(named),
            ) % {"count": len(named), "image": named[0].name}
        elif image.key in taken:
            problems[file.key] = _("%(image)s has another mask.") % {"image": image.name}
        elif problem := pair_problem(file, image):
            problems[file.key] = problem
        else:
            image_of[file.key] = image.key
            taken.add(image.key)
    return Pairing(roles, image_of, problems)


def _by_stem(files: Iterable[PairingFile]) -> dict[str, list[PairingFile]]:
    """Return images by the stems that masks may use; a shorter stem only if no image has it."""
    shorter: dict[str, list[PairingFile]] = {}
    found: dict[str, list[PairingFile]] = {}
    for file in files:
        own, *others = picture_stems(file.name)
        found.setdefault(own, []).append(file)
        shorter |= {stem: [file] for stem in others}
    return shorter | found


def _stem_of_image(name: str, images: Container[str]) -> str:
    """Return the stem of the image that a mask's name refers to."""
    own = mask_stem(name) or picture_stem(name)
    return own if own in images else prefixed_stem(name, images) or own


def _named_alike(mask: PairingFile, images: list[PairingFile]) -> list[PairingFile]:
    """Return the images whose names match the mask's in case too, or all if none does.

    If the mask is already paired with one of them, return only that one.
    """
    alike = [file for file in images if mask.name.startswith(PurePath(file.name).stem)] or images
    return [file for file in alike if file.key == mask.fixed_image] or alike


def pair_problem(mask: PairingFile, image: PairingFile) -> str:
    """Return the reason why a file cannot be the mask of an image; "" if it can."""
    if not mask.mask_like:
        return mask.not_mask or str(NO_MASK)
    (columns, rows), (width, height) = mask.size, image.size
    if not mask_fits((rows, columns), (height, width)):
        return _(
            "The mask is %(columns)s × %(rows)s pixels, but %(image)s is %(width)s × %(height)s."
        ) % {
            "columns": columns,
            "rows": rows,
            "image": image.name,
            "width": width,
            "height": height,
        }
    return ""


def _map_problem(file: PairingFile, images: dict[str, list[PairingFile]]) -> str:
    """Return the reason why a file cannot be the probabilities of an image; "" if it can."""
    stem = map_stem(file.name) or picture_stem(file.name)
    named = images.get(stem, [])
    if not named:
        return _no_image_named(stem)
    if len(named) > 1:
        return ngettext(
            "%(count)s image is named %(name)s.", "%(count)s images are named %(name)s.", len(named)
        ) % {"count": len(named), "name": stem}
    (columns, rows), (width, height) = file.size, named[0].size
    if not mask_fits((rows, columns), (height, width)):
        return _(
            "The map is %(columns)s × %(rows)s pixels, but %(image)s is %(width)s × %(height)s."
        ) % {
            "columns": columns,
            "rows": rows,
            "image": named[0].name,
            "width": width,
            "height": height,
        }
    return ""


def _no_image_named(stem: str) -> str:
    return _("No image is named %(name)s.") % {"name": stem}


def _roles(files: list[PairingFile]) -> dict[UUID, str]:
    photographs = {
        picture_stem(file.name)
        for file in files
        if is_lossy(file.name) and file.fixed_role != "mask"
    }
    pictures = {picture_stem(file.name) for file in files if mask_stem(file.name) is None}
    roles = {}
    for file in files:
        beside = not is_lossy(file.name) and picture_stem(file.name) in photographs
        is_prefixed = prefixed_stem(file.name, pictures) is not None
        by_name = mask_stem(file.name) is not None or (file.mask_like and (beside or is_prefixed))
        roles[file.key] = file.fixed_role or ("mask" if by_name else "image")
    return roles


def _fixed_pairs(
    files: list[PairingFile], roles: dict[UUID, str]
) -> tuple[dict[UUID, UUID], dict[UUID, str]]:
    """Return the pairs made by people, and a problem if one of the two was replaced since."""
    by_key = {file.key: file for file in files}
    pairs: dict[UUID, UUID] = {}
    problems: dict[UUID, str] = {}
    for file in files:
        image = by_key.get(file.fixed_image) if file.fixed_image is not None else None
        if not file.fixed or image is None or roles[image.key] != "image":
            continue
        if problem := pair_problem(file, image):
            problems[file.key] = problem
        else:
            pairs[file.key] = image.key
    return pairs, problems
