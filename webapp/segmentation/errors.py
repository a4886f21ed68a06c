"""Refusals of the segmentation application; every message is one sentence for people."""

from webapp.common.errors import Refusal


class SegmentationError(Refusal):
    """Refusal to create or change a set, model, prediction or mask. Nothing was changed."""


class StrokesLeftError(SegmentationError):
    """Refusal to remove a class that has strokes, which the sender may ask to remove as well."""


class PaintingBusyError(SegmentationError):
    """Refusal to answer yet: others paint, and ``place`` is the number in the line for it."""

    def __init__(self, sentence: str, place: int) -> None:
        super().__init__(sentence)
        self.place = place
