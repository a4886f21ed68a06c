"""Command ``manage.py restore FILE``: restore a backup into an empty installation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.operations.backup import BackupError, backup_restore


class Command(BaseCommand):
    """Command that restores a backup."""

    help = "Bring a backup back into an empty installation that does not run."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the path of the file."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore the backup and print its content."""
        try:
            notes = backup_restore(options["file"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored: {notes['engine']} database, {notes['files']} files.")
