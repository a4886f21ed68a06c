"""Another program's probability maps beside the images of a set: pairing and reading."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets.image_names import map_stem, picture_stem
from engine.datasets.probability_maps import read_map
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage, Segmenter


@dataclass(frozen=True, slots=True)
class MapsBeside:
    """Number of images with a suitable map, number of all images, and the maps' planes."""

    n_with: int
    n_images: int
    planes: tuple[int, ...]

    @property
    def n_planes(self) -> int:
        """Number of planes to learn with: 0 unless every image has a map with equally many."""
        is_whole = self.n_with == self.n_images and len(self.planes) == 1
        return self.planes[0] if is_whole else 0


def maps_beside(*image_sets: ImageSet) -> MapsBeside:
    """Return the counts of maps of sets; for a set without maps only its images are counted."""
    n_with = n_images = 0
    planes: set[int] = set()
    for image_set in image_sets:
        maps = image_set.files.filter(role=ImageFile.Role.MAP, problem="")
        planes_of = {map_stem(one.name): one.facts["planes"] for one in maps}
        names = image_set.files.images().values_list("name", flat=True)
        n_images += len(names) if planes_of else names.count()
        n_with += sum(picture_stem(name) in planes_of for name in names) if planes_of else 0
        planes.update(planes_of.values())
    return MapsBeside(n_with, n_images, tuple(sorted(planes)))


def check_maps_beside(*, segmenter: Segmenter, image_set: ImageSet) -> None:
    """Refuse to predict a set in which no image has the map that a model needs.

    Raises
    ------
    SegmentationError
        The sentence names the planes that are needed and those that exist.
    """
    needed = segmenter.outcome.get("n_maps", 0)
    if not needed:
        return
    there = maps_beside(image_set)
    if there.n_with and needed in there.planes:
        return
    kinds = " or ".join(f"{count}" for count in there.planes)
    found = (
        ngettext(
            "has maps of %(kinds)s plane", "has maps of %(kinds)s planes", 1 if kinds == "1" else 2
        )
        % {"kinds": kinds}
        if there.n_with
        else _("has none")
    )
    raise SegmentationError(
        ngettext(
            "%(segmenter)s needs a probability map of %(needed)s plane beside each image: "
            "%(image_set)s %(found)s.",
            "%(segmenter)s needs a probability map of %(needed)s planes beside each image: "
            "%(image_set)s %(found)s.",
            needed,
        )
        % {
            "segmenter": segmenter.name,
            "needed": needed,
            "image_set": image_set.name,
            "found": found,
        }
    )


def read_planes(file: ImageFile) -> NDArray[np.float32]:
    """Return the probabilities beside an image, shape (H, W, C).

    Raises
    ------
    InvalidProblemError
        If the image has none; the sentence names it.
    """
    stem = picture_stem(file.name)
    maps = _begins_like(file.image_set.files.filter(role=ImageFile.Role.MAP, problem=""), stem)
    found = next((one for one in maps if map_stem(one.name) == stem), None)
    if found is None:
        raise InvalidProblemError(
            _("The model needs a probability map beside each image: %(file)s has none.")
            % {"file": file.name}
        )
    return read_map(found.store.fetch(found.digest), ending=found.name[found.name.rindex(".") :])


def planes_of_row(model: Any, row: PredictedImage) -> NDArray[np.float32] | None:
    """Return the probabilities beside a predicted image, or None if the model needs none.

    Raises
    ------
    InvalidProblemError
        If there are none; for an image removed from its set, the model itself reports that.
    """
    return read_planes(row.file) if model.n_maps and row.file else None


def is_map_of_image(image_set: ImageSet, name: str) -> bool:
    """Return True if a file is named as the probabilities of an image of the set."""
    stem = map_stem(name)
    if stem is None:
        return False
    images = _begins_like(image_set.files.images(), stem)
    return any(picture_stem(image.name) == stem for image in images.only("name"))


def _begins_like(files: QuerySet[ImageFile], stem: str) -> QuerySet[ImageFile]:
    """Return the files that may have a stem; databases ignore case for ASCII letters only."""
    lead = "".join(itertools.takewhile(str.isascii, stem))
    return files.filter(name__istartswith=lead)
