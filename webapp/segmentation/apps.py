"""The segmentation application."""

from django.apps import AppConfig


class SegmentationConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.segmentation"
    label = "segmentation"

    def ready(self) -> None:
        """Add the rail's lines, next steps, the home panel, search and demonstration."""
        from webapp.segmentation import shared_pages

        shared_pages.register()
