"""Application configuration of segmentation."""

from django.apps import AppConfig


class SegmentationConfig(AppConfig):
    """Application that adds segmentation to shared pages."""

    name = "webapp.segmentation"
    label = "segmentation"

    def ready(self) -> None:
        """Register rail lines, next steps, the home panel, search, demonstration and files."""
        from webapp.files.orphaned_files import register_needed
        from webapp.segmentation import shared_pages
        from webapp.segmentation.selectors import files

        shared_pages.register()
        register_needed("files", files.needed_contents)
        register_needed("segmenters", files.needed_weights)
        for folder in ("marginals", "masks", "layers", "previews", "objects"):
            register_needed(folder, files.needed_predictions)
