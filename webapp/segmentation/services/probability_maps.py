"""Probabilities of another program beside the images of a set: whose they are, and reading them."""

from dataclasses import dataclass

import numpy as np
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
    maps = _maps_by_stem(image_set)
    images = image_set.files.filter(role=ImageFile.Role.IMAGE)
    names = images.values_list("name", flat=True) if maps else ()
    n_with = sum(picture_stem(name) in maps for name in names)
    planes = {one.facts["planes"] for one in maps.values()}
    return MapsBeside(n_with, len(names), tuple(sorted(planes)))


def read_planes(file: ImageFile) -> NDArray[np.float32]:
    """Read the probabilities beside an image, shape (H, W, C).

    Raises
    ------
    InvalidProblemError
        If there are none; the sentence names the image.
    """
    found = _maps_by_stem(file.image_set, file.name).get(picture_stem(file.name))
    if found is None:
        raise InvalidProblemError(
            f"The model needs a probability map beside each image: {file.name} has none."
        )
    return read_map(found.store.fetch(found.digest), ending=found.name[found.name.rindex(".") :])


def _maps_by_stem(image_set: ImageSet, of_image: str = "") -> dict[str, ImageFile]:
    """Return the maps that fit an image, of a whole set or of one image, by the stem they name."""
    maps = image_set.files.filter(role=ImageFile.Role.MAP, problem="")
    if of_image:
        maps = maps.filter(name__istartswith=of_image.rpartition(".")[0] or of_image)
    return {map_stem(one.name) or picture_stem(one.name): one for one in maps}
