"""The application of letters to students."""

from django.apps import AppConfig


class LettersConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.letters"
    label = "letters"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.letters import shared_pages

        shared_pages.register()
