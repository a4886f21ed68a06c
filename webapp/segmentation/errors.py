"""Refusals of the segmentation application; every message is one sentence for people."""

from webapp.common.errors import Refusal


class SegmentationError(Refusal):
    """Refusal to create or change a set, model, prediction or mask. Nothing was changed."""
