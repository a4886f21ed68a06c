"""The cohorts application."""

from django.apps import AppConfig


class CohortsConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.cohorts"
    label = "cohorts"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.cohorts import shared_pages, signals  # noqa: F401

        shared_pages.register()
