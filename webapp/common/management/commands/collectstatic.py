"""Collecting static files, with a sentence where their folder cannot be written."""

from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management.base import CommandError


class Command(collectstatic.Command):
    """Django's own, which shows a traceback where the folder is read-only or the disk is full."""

    def handle(self, **options: Any) -> str | None:
        """Collect, or say why that is impossible."""
        try:
            return super().handle(**options)
        except OSError as error:
            raise CommandError(
                f"Static files cannot be written into {settings.STATIC_ROOT}: {error.strerror}. "
                "Let the user who starts Bethe Hall write there, then start it again."
            ) from error
