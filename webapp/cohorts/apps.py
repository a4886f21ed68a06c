"""The cohorts application."""

from django.apps import AppConfig


class CohortsConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.cohorts"
    label = "cohorts"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.cohorts import shared_pages, signals  # noqa: F401
        from webapp.cohorts.draft_files import DRAFTS
        from webapp.cohorts.selectors import files
        from webapp.files.left_files import register_needed

        shared_pages.register()
        register_needed(DRAFTS, files.needed_uploads)
