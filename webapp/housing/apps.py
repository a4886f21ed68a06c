"""The housing application."""

from django.apps import AppConfig


class HousingConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.housing"
    label = "housing"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.housing import shared_pages, signals  # noqa: F401

        shared_pages.register()
