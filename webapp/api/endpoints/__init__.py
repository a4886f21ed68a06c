"""The endpoints, by subject; importing this package declares them all."""

from webapp.api.endpoints import images, jobs, predictions, proposals, roommates, segmenters

__all__ = ["images", "jobs", "predictions", "proposals", "roommates", "segmenters"]
