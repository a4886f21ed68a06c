"""Images with masks, read one pair at a time; what cannot be used is left out and named."""

from collections.abc import Callable, Iterator, Sequence
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets import read_image, read_mask
from engine.datasets.masks import match_mask
from webapp.segmentation.models import ImageFile

ByteImage = NDArray[np.uint8]
MaskArray = NDArray[np.bool_]


class LabelledFiles:
    """The pictures and masks of some files, read in order, and again by whoever begins again.

    One bad file stops none other: a picture or mask that is damaged, or a mask that is none or
    does not fit, goes to ``left_out`` with its reason.

    Parameters
    ----------
    files : sequence of ImageFile, each with its mask
    on_next : called before each file is read; what it raises ends the reading
    when_read : called with the files that could be used, once all are read or reading has ended
    """

    def __init__(
        self,
        files: Sequence[ImageFile],
        *,
        on_next: Callable[[], None],
        when_read: Callable[[list[ImageFile]], None],
    ) -> None:
        self.files, self._on_next, self._when_read = files, on_next, when_read
        self.used: list[ImageFile] = []
        self.left_out: list[dict[str, str]] = []
        self._is_noted = True

    def some(self, count: int) -> "LabelledFiles":
        """Up to ``count`` of the files, evenly spread, to be read apart from the others."""
        step = max(1, -(-len(self.files) // count))
        return LabelledFiles(self.files[::step], on_next=self._on_next, when_read=lambda used: None)

    def end_reading(self) -> None:
        """Say which files were used, where nobody asked for the others: there was no time."""
        if not self._is_noted:
            self._is_noted = True
            self._when_read(self.used)

    def in_step(self) -> tuple[Iterator[ByteImage], Iterator[MaskArray]]:
        """Return pictures and masks, to be gone through together: then one pair is held."""
        for_images, for_masks = tee(self._pairs())
        return (image for image, _ in for_images), (mask for _, mask in for_masks)

    def _pairs(self) -> Iterator[tuple[ByteImage, MaskArray]]:
        self.used, self.left_out, self._is_noted = [], [], False
        for file in self.files:
            self._on_next()
            try:
                pair = _read(file)
            except InvalidProblemError as error:
                self.left_out.append({"name": file.name, "reason": str(error)})
                continue
            self.used.append(file)
            yield pair
        self.end_reading()


def left_out_sentence(left_out: Sequence[dict[str, str]]) -> str:
    """Return "Left out: a.mask.png: the mask is ... And 2 more." or nothing."""
    if not left_out:
        return ""
    more = f" And {len(left_out) - 1} more." if len(left_out) > 1 else ""
    return f"Left out: {left_out[0]['reason']}{more}"


def _read(file: ImageFile) -> tuple[ByteImage, MaskArray]:
    image = read_image(file.store.fetch(file.digest), name=file.name, view=file.view)
    mask = read_mask(file.store.fetch(file.mask.digest), name=file.mask.name)
    return image, match_mask(mask, (image.shape[0], image.shape[1]), name=file.mask.name)
