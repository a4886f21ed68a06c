"""The application of questionnaires."""

from django.apps import AppConfig


class SurveysConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.surveys"
    label = "surveys"

    def ready(self) -> None:
        """Register with the shared pages; models are ready only now."""
        from webapp.housing.student_finder import register_codes
        from webapp.surveys import shared_pages
        from webapp.surveys.services.cohorts import codes_of

        shared_pages.register()
        register_codes(codes_of)
