"""The Django application of room choice by students, in rounds with time slots."""

from django.apps import AppConfig


class RoomChoiceConfig(AppConfig):
    """Django application of room choice; it registers its parts of other applications' pages."""

    name = "webapp.room_choice"
    label = "room_choice"

    def ready(self) -> None:
        """Register with the shared pages. Models can be used only from here on."""
        from webapp.room_choice import shared_pages

        shared_pages.register()
