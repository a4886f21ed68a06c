"""Command that makes a key for ENCRYPTION_KEYS."""

from typing import Any

from cryptography.fernet import Fernet
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Command that prints a new key and stores it nowhere."""

    help = "Print a new key for ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a new key."""
        self.stdout.write(Fernet.generate_key().decode("ascii"))
