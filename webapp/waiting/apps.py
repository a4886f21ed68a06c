"""The Django application of waiting lists: their order, and offers of beds to students."""

from django.apps import AppConfig


class WaitingConfig(AppConfig):
    """Django application of waiting lists; its rows are those of housing."""

    name = "webapp.waiting"
    label = "waiting"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.waiting import shared_pages

        shared_pages.register()
