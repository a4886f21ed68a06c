"""Application configuration of the demonstration."""

from django.apps import AppConfig


class DemonstrationConfig(AppConfig):
    """Application that prepares results for the demonstration and leads through them."""

    name = "webapp.demonstration"
    label = "demonstration"

    def ready(self) -> None:
        """Register the loader and the panel of the home page."""
        from webapp.demonstration import shared_pages

        shared_pages.register()
