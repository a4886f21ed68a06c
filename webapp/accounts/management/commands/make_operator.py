"""Command that makes an account an operator of the installation, or removes that right."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts.models import User
from webapp.accounts.services import AccountError, operator_set


class Command(BaseCommand):
    """Command, because no page gives this right; it needs access to the machine."""

    help = "Make an account an operator, who sees hosts, workers and disks and starts backups."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the sign-in name."""
        parser.add_argument("name", help="the sign-in name of an account")
        parser.add_argument("--remove", action="store_true", help="take the right away again")

    def handle(self, *args: Any, **options: Any) -> None:
        """Give the right to one account, or remove it."""
        is_operator = not options["remove"]
        try:
            user = User.objects.get_by_natural_key(options["name"])
            operator_set(user=user, is_operator=is_operator)
        except User.DoesNotExist as error:
            raise CommandError(f"No account is called {options['name']}.") from error
        except AccountError as error:
            raise CommandError(str(error)) from error
        words = "is an operator of this installation" if is_operator else "is no longer an operator"
        self.stdout.write(f"{user.get_username()} {words}.")
