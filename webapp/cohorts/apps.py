"""The Django application of cohorts."""

from django.apps import AppConfig


class CohortsConfig(AppConfig):
    """Django application of cohorts; it registers its parts of shared pages."""

    name = "webapp.cohorts"
    label = "cohorts"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.cohorts import shared_pages, signals  # noqa: F401
        from webapp.cohorts.draft_files import DRAFTS
        from webapp.cohorts.selectors import files
        from webapp.cohorts.services.latecomers import LATE
        from webapp.cohorts.student_files import register_student_file
        from webapp.files.orphaned_files import register_needed

        shared_pages.register()
        register_student_file(LATE)
        register_needed(DRAFTS, files.needed_uploads)
