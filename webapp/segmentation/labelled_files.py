"""Images with masks, read one at a time; what cannot be used is left out and named."""

from collections.abc import Callable, Iterator, Sequence
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets import read_image, read_mask
from engine.datasets.masks import match_mask
from engine.learning.segmentation.given_maps import Planes, check_proportions
from webapp.segmentation.models import ImageFile
from webapp.segmentation.services.probability_maps import read_planes

ByteImage = NDArray[np.uint8]
MaskArray = NDArray[np.bool_]


class LabelledFiles:
    """Pictures, masks and maps of some files, read in order, and again by whoever begins again.

    One bad file stops none other: a picture or mask that is damaged, or a mask that is none or
    does not fit, or a probability map that is gone, goes to ``left_out`` with its reason.

    Parameters
    ----------
    files : sequence of ImageFile, each with its mask
    on_next : called before each file is read; what it raises ends the reading
    when_read : called with the files that could be used, once all are read or reading has ended
    n_planes : planes of the probability map beside each picture; 0 where maps are not looked at
    """

    def __init__(
        self,
        files: Sequence[ImageFile],
        *,
        on_next: Callable[[], None],
        when_read: Callable[[list[ImageFile]], None],
        n_planes: int = 0,
    ) -> None:
        self.files, self._on_next, self._when_read = files, on_next, when_read
        self._n_planes = n_planes
        self.used: list[ImageFile] = []
        self.left_out: list[dict[str, str]] = []
        self._is_noted = True

    def some(self, count: int) -> "LabelledFiles":
        """Up to ``count`` of the files, evenly spread, to be read apart from the others."""
        step = max(1, -(-len(self.files) // count))
        return LabelledFiles(
            self.files[::step],
            on_next=self._on_next,
            when_read=lambda used: None,
            n_planes=self._n_planes,
        )

    def end_reading(self) -> None:
        """Say which files were used, where nobody asked for the others: there was no time."""
        if not self._is_noted:
            self._is_noted = True
            self._when_read(self.used)

    def in_step(self) -> tuple[Iterator[ByteImage], Iterator[MaskArray], Iterator[Planes] | None]:
        """Return pictures, masks and maps, to be gone through together: then one of each is held.

        Where maps are not looked at there is None in their place.
        """
        if not self._n_planes:
            for_images, for_masks = tee(self._read_all())
            return (row[0] for row in for_images), (row[1] for row in for_masks), None
        parts = tee(self._read_all(), 3)
        return (row[0] for row in parts[0]), (row[1] for row in parts[1]), _maps(parts[2])

    def _read_all(self) -> Iterator[tuple[ByteImage, MaskArray, Planes | None]]:
        self.used, self.left_out, self._is_noted = [], [], False
        for file in self.files:
            self._on_next()
            try:
                found = _read(file, self._n_planes)
            except InvalidProblemError as error:
                self.left_out.append({"name": file.name, "reason": str(error)})
                continue
            self.used.append(file)
            yield found
        self.end_reading()


def left_out_sentence(left_out: Sequence[dict[str, str]]) -> str:
    """Return "Left out: a.mask.png: the mask is ... And 2 more." or nothing."""
    if not left_out:
        return ""
    more = f" And {len(left_out) - 1} more." if len(left_out) > 1 else ""
    return f"Left out: {left_out[0]['reason']}{more}"


def _maps(rows: Iterator[tuple[ByteImage, MaskArray, Planes | None]]) -> Iterator[Planes]:
    return (maps for _, _, maps in rows if maps is not None)


def _read(file: ImageFile, n_planes: int) -> tuple[ByteImage, MaskArray, Planes | None]:
    image = read_image(file.store.fetch(file.digest), name=file.name, view=file.view)
    mask = read_mask(file.store.fetch(file.mask.digest), name=file.mask.name)
    fitted = match_mask(mask, (image.shape[0], image.shape[1]), name=file.mask.name)
    return image, fitted, _read_maps(file, image, n_planes) if n_planes else None


def _read_maps(file: ImageFile, image: ByteImage, n_planes: int) -> Planes:
    """The map beside an image, which another may have taken the place of meanwhile."""
    planes = read_planes(file)
    check_proportions(file.name, planes.shape, image.shape)
    if planes.shape[2] != n_planes:
        raise InvalidProblemError(
            f"{file.name}: its probability map has {planes.shape[2]} planes, not {n_planes}."
        )
    return planes
