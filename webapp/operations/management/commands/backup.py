"""Command ``manage.py backup FILE``: database and files of one moment, while people work."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.operations.backup import BackupError, backup_write


class Command(BaseCommand):
    """Command that writes a backup."""

    help = "Write database and files of this moment to one tar file, while people work."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the path of the file."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file and print its content."""
        try:
            notes = backup_write(options["file"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['file']}: {notes['engine']} database, {notes['files']} files.")
