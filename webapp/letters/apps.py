"""The Django application of letters to students."""

from django.apps import AppConfig


class LettersConfig(AppConfig):
    """Django application of letters; it registers its parts of shared pages."""

    name = "webapp.letters"
    label = "letters"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.cohorts.late_arrivals import register_contradictions
        from webapp.cohorts.student_files import register_student_file
        from webapp.letters import shared_pages
        from webapp.letters.selectors import written_to
        from webapp.letters.services.addresses import ADDRESSES

        shared_pages.register()
        register_contradictions(written_to)
        register_student_file(ADDRESSES)
