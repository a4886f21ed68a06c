"""Refusals of the segmentation application; every message is one sentence for people."""

from webapp.common.errors import Refusal


class SegmentationError(Refusal):
    """A set, model, prediction or mask cannot be made or changed so. Nothing was changed."""
