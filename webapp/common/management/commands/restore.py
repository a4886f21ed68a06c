"""``manage.py restore FILE``: bring a backup back into an empty installation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.common.backup import BackupError, backup_restore


class Command(BaseCommand):
    """Bring a backup back."""

    help = "Bring a backup back into an empty installation that does not run."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file's path."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore and say what came back."""
        try:
            notes = backup_restore(options["file"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored: {notes['engine']} database, {notes['files']} files.")
