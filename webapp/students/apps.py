"""The Django application of the page of one student, of notes and of the search for students."""

from django.apps import AppConfig


class StudentsConfig(AppConfig):
    """Django application of students; it registers its search."""

    name = "webapp.students"
    label = "students"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.common import hooks
        from webapp.students import signals  # noqa: F401
        from webapp.students.search import search

        hooks.register_search(search)
