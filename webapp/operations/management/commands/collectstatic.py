"""Command that collects static files, with a sentence if their folder cannot be written."""

from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management.base import CommandError


class Command(collectstatic.Command):
    """Django's command, which shows a traceback for a read-only folder or a full disk."""

    def handle(self, **options: Any) -> str | None:
        """Collect the files, or explain why that is impossible."""
        try:
            return super().handle(**options)
        except OSError as error:
            raise CommandError(
                f"Static files cannot be written into {settings.STATIC_ROOT}: {error.strerror}. "
                "Let the user who starts Bethe Hall write there, then start it again."
            ) from error
