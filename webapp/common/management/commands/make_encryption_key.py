"""Make a key for ENCRYPTION_KEYS."""

from typing import Any

from cryptography.fernet import Fernet
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Prints a fresh key; it is kept nowhere."""

    help = "Print a new key for ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(Fernet.generate_key().decode("ascii"))
