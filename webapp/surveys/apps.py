"""The Django application of questionnaires."""

from django.apps import AppConfig


class SurveysConfig(AppConfig):
    """Django application of questionnaires; it registers its parts of shared pages."""

    name = "webapp.surveys"
    label = "surveys"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.cohorts.models import register_draft_page
        from webapp.cohorts.student_finder import register_codes
        from webapp.common.hooks import register_error_pages
        from webapp.surveys import answer_files, shared_pages, signals  # noqa: F401
        from webapp.surveys.services.cohorts import codes_of
        from webapp.surveys.services.translation_files import PURPOSE
        from webapp.surveys.views.student_pages import error_page

        shared_pages.register()
        answer_files.register()
        register_error_pages("/q/", error_page)
        register_codes(codes_of)
        register_draft_page(PURPOSE, "surveys:languages-draft")
