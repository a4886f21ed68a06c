"""The Django application of students' personal pages: room, roommates, requests, changes."""

from django.apps import AppConfig


class ResidentsConfig(AppConfig):
    """Django application of personal pages; it registers its parts of shared pages."""

    name = "webapp.residents"
    label = "residents"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.residents import shared_pages

        shared_pages.register()
