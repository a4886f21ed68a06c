"""Command that makes an organisation with an administrator, who then adds its people."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts.forms import NewUserForm
from webapp.accounts.models import Role
from webapp.accounts.services import AccountError, organisation_create


class Command(BaseCommand):
    """Command that prints a temporary password once; the first sign-in requires a new one."""

    help = "Make an organisation and its first administrator."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the names, and optionally the department under the name."""
        parser.add_argument("name", help="of the organisation, such as “Lakeside College”")
        parser.add_argument("--department", default="", help="such as “Residential Life”")
        parser.add_argument(
            "--administrator", required=True, metavar="USER", help="the sign-in name of a person"
        )
        parser.add_argument(
            "--operator",
            action="store_true",
            help="the person is an operator of the installation too",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the organisation and its administrator, or neither."""
        person = {"username": options["administrator"], "role": Role.ADMINISTRATOR}
        form = NewUserForm(person)  # sign-in names follow the same rules everywhere
        if not form.is_valid():
            raise CommandError(" ".join(map(str, form.errors["username"])))
        username = form.cleaned_data["username"]
        try:
            organisation, password = organisation_create(
                name=options["name"],
                department=options["department"],
                administrator=username,
                is_operator=options["operator"],
            )
        except AccountError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{organisation} is made. {username} signs in with {password}\n"
            "The password is shown only now, and must be changed at the first sign-in."
        )
