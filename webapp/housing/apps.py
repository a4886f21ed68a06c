"""The housing application."""

from django.apps import AppConfig


class HousingConfig(AppConfig):
    """Django application of housing; it registers its parts of shared pages."""

    name = "webapp.housing"
    label = "housing"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from engine.tabular.file_kinds import FileKind
        from webapp.cohorts.late_arrivals import register_contradictions
        from webapp.cohorts.student_files import register_student_file
        from webapp.cohorts.wrong_slots import register_move
        from webapp.files.orphaned_files import register_needed
        from webapp.housing import shared_pages, signals  # noqa: F401
        from webapp.housing.pairs.late_arrivals import decided_about as decided_about_pairs
        from webapp.housing.selectors.files import needed_arrays
        from webapp.housing.services.buildings import building_draft_move
        from webapp.housing.services.late_undo import decided_about
        from webapp.housing.services.requests import CHOICES, NEEDS, REQUESTS

        shared_pages.register()
        register_move(FileKind.ROOMS, building_draft_move)
        register_contradictions(decided_about)
        register_contradictions(decided_about_pairs)
        register_needed("proposals", needed_arrays)
        for kind in (REQUESTS, CHOICES, NEEDS):
            register_student_file(kind)
