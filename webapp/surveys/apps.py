"""The application of questionnaires."""

from django.apps import AppConfig


class SurveysConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.surveys"
    label = "surveys"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.surveys import shared_pages

        shared_pages.register()
