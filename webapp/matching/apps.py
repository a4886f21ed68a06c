"""Application configuration of matching."""

from django.apps import AppConfig


class MatchingConfig(AppConfig):
    """Application that adds models to shared pages."""

    name = "webapp.matching"
    label = "matching"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.files.orphaned_files import register_needed
        from webapp.matching import shared_pages, signals  # noqa: F401
        from webapp.matching.selectors import files

        shared_pages.register()
        register_needed("models", files.needed_weights)
