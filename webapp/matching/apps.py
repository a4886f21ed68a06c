"""The matching application."""

from django.apps import AppConfig


class MatchingConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.matching"
    label = "matching"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.matching import shared_pages, signals  # noqa: F401

        shared_pages.register()
