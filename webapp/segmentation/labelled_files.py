"""Labelled images of a job, read one at a time; unusable files are left out and named."""

from collections.abc import Callable, Iterator, Sequence
from itertools import tee
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets import edges_of, read_image, read_mask
from engine.datasets.label_maps import match_values
from engine.datasets.masks import match_mask, understand_mask
from engine.learning.segmentation.given_maps import Planes, check_proportions
from webapp.segmentation.models import ImageFile
from webapp.segmentation.services.probability_maps import read_planes

ByteImage = NDArray[np.uint8]
MaskArray = NDArray[np.bool_]
Labels = MaskArray | NDArray[np.uint8]
"""A mask, or labels of background, objects and their edges."""


class LabelledFiles:
    """Images, masks and maps of some files, read in order and repeatedly.

    A bad file does not stop the others: a damaged image or mask, a file that is not a mask or does
    not fit, or a missing probability map is listed in ``left_out`` with its reason.

    Parameters
    ----------
    files : sequence of ImageFile, each with its mask
    on_next : called before each file is read; an exception ends the reading
    when_read : called with the usable files, once all are read or reading has ended
    n_planes : planes of the probability map of each image; 0 to ignore maps
    edges : True to return labels of background, objects and their edges in place of masks
    """

    def __init__(
        self,
        files: Sequence[ImageFile],
        *,
        on_next: Callable[[], None],
        when_read: Callable[[list[ImageFile]], None],
        n_planes: int = 0,
        edges: bool = False,
    ) -> None:
        self.files, self._on_next, self._when_read = files, on_next, when_read
        self._n_planes, self._edges = n_planes, edges
        self.used: list[ImageFile] = []
        self.left_out: list[dict[str, str]] = []
        self._is_noted = True

    def some(self, count: int) -> "LabelledFiles":
        """Return up to ``count`` of the files, evenly spread, to be read separately."""
        step = max(1, -(-len(self.files) // count))
        return LabelledFiles(
            self.files[::step],
            on_next=self._on_next,
            when_read=lambda used: None,
            n_planes=self._n_planes,
            edges=self._edges,
        )

    def end_reading(self) -> None:
        """Report the files used so far, if time ran out before the others were requested."""
        if not self._is_noted:
            self._is_noted = True
            self._when_read(self.used)

    def in_step(self) -> tuple[Iterator[ByteImage], Iterator[Any], Iterator[Planes] | None]:
        """Return images, masks and maps, to be iterated together: then one of each is in memory.

        If maps are ignored, the third is None.
        """
        if not self._n_planes:
            for_images, for_masks = tee(self._read_all())
            return (row[0] for row in for_images), (row[1] for row in for_masks), None
        parts = tee(self._read_all(), 3)
        return (row[0] for row in parts[0]), (row[1] for row in parts[1]), _maps(parts[2])

    def _read_all(self) -> Iterator[tuple[ByteImage, Labels, Planes | None]]:
        self.used, self.left_out, self._is_noted = [], [], False
        for file in self.files:
            self._on_next()
            try:
                found = _read(file, self._n_planes, edges=self._edges)
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
    sentence = _("Left out: %(reason)s") % {"reason": left_out[0]["reason"]}
    n_more = len(left_out) - 1
    if not n_more:
        return sentence
    more = ngettext("And %(count)s more.", "And %(count)s more.", n_more) % {"count": n_more}
    return f"{sentence} {more}"


def _maps(rows: Iterator[tuple[ByteImage, Labels, Planes | None]]) -> Iterator[Planes]:
    return (maps for _, _, maps in rows if maps is not None)


def _read(
    file: ImageFile, n_planes: int, *, edges: bool
) -> tuple[ByteImage, Labels, Planes | None]:
    image = read_image(file.store.fetch(file.digest), name=file.name, view=file.view)
    path, shape = file.store.fetch(file.mask.digest), (image.shape[0], image.shape[1])
    labels: Labels
    if edges:
        numbers = understand_mask(path, name=file.mask.name).numbers
        labels = edges_of(match_values(numbers, shape, name=file.mask.name))
    else:
        labels = match_mask(read_mask(path, name=file.mask.name), shape, name=file.mask.name)
    return image, labels, _read_maps(file, image, n_planes) if n_planes else None


def _read_maps(file: ImageFile, image: ByteImage, n_planes: int) -> Planes:
    """Return the map of an image, which another file may have replaced meanwhile."""
    planes = read_planes(file)
    check_proportions(file.name, planes.shape, image.shape)
    if planes.shape[2] != n_planes:
        raise InvalidProblemError(
            ngettext(
                "%(name)s: its probability map has %(count)s plane, not %(expected)s.",
                "%(name)s: its probability map has %(count)s planes, not %(expected)s.",
                planes.shape[2],
            )
            % {"name": file.name, "count": planes.shape[2], "expected": n_planes}
        )
    return planes
