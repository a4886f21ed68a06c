"""Probabilities of another program beside the images of a set: whose they are, and reading them."""

import itertools
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets.image_names import map_stem, picture_stem
from engine.datasets.label_maps import read_map
from webapp.segmentation.models import ImageFile, ImageSet


@dataclass(frozen=True, slots=True)
class MapsBeside:
    """How many images of a set have a map that fits, of how many, and the planes of each map."""

    n_with: int
    n_images: int
    planes: tuple[int, ...]

    @property
    def n_planes(self) -> int:
        """Planes to learn with: 0 unless every image has a map, all with as many planes."""
        is_whole = self.n_with == self.n_images and len(self.planes) == 1
        return self.planes[0] if is_whole else 0


def maps_beside(image_set: ImageSet) -> MapsBeside:
    """Count the maps of a set; without any, its images are not looked at."""
    maps = image_set.files.filter(role=ImageFile.Role.MAP, problem="")
    planes_of = {map_stem(one.name): one.facts["planes"] for one in maps}
    images = image_set.files.filter(role=ImageFile.Role.IMAGE)
    names = images.values_list("name", flat=True) if planes_of else ()
    n_with = sum(picture_stem(name) in planes_of for name in names)
    return MapsBeside(n_with, len(names), tuple(sorted(set(planes_of.values()))))


def read_planes(file: ImageFile) -> NDArray[np.float32]:
    """Read the probabilities beside an image, shape (H, W, C).

    Raises
    ------
    InvalidProblemError
        If there are none; the sentence names the image.
    """
    stem = picture_stem(file.name)
    maps = _begins_like(file.image_set.files.filter(role=ImageFile.Role.MAP, problem=""), stem)
    found = next((one for one in maps if map_stem(one.name) == stem), None)
    if found is None:
        raise InvalidProblemError(
            f"The model needs a probability map beside each image: {file.name} has none."
        )
    return read_map(found.store.fetch(found.digest), ending=found.name[found.name.rindex(".") :])


def is_map_of_image(image_set: ImageSet, name: str) -> bool:
    """Whether a file is named as the probabilities of an image of the set."""
    stem = map_stem(name)
    if stem is None:
        return False
    images = _begins_like(image_set.files.filter(role=ImageFile.Role.IMAGE), stem)
    return any(picture_stem(image.name) == stem for image in images.only("name"))


def _begins_like(files: QuerySet[ImageFile], stem: str) -> QuerySet[ImageFile]:
    """Return those that may have a stem: databases know small and capital letters of ASCII only."""
    lead = "".join(itertools.takewhile(str.isascii, stem))
    return files.filter(name__istartswith=lead)
