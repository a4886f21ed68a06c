"""Make an organisation of one's own, with the administrator who then adds its people."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts.forms import NewUserForm
from webapp.accounts.models import Role
from webapp.accounts.services import AccountError, organisation_create


class Command(BaseCommand):
    """Prints a temporary password once; the first sign-in asks for another one."""

    help = "Make an organisation and its first administrator."

    def add_arguments(self, parser: CommandParser) -> None:
        """The names, and where it says so the department that stands under the name."""
        parser.add_argument("name", help="of the organisation, such as “Lakeside College”")
        parser.add_argument("--department", default="", help="such as “Residential Life”")
        parser.add_argument(
            "--administrator", required=True, metavar="USER", help="the sign-in name of a person"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make both, or neither."""
        person = {"username": options["administrator"], "role": Role.ADMINISTRATOR}
        form = NewUserForm(person)  # sign-in names follow the same rules everywhere
        if not form.is_valid():
            raise CommandError(" ".join(form.errors["username"]))
        username = form.cleaned_data["username"]
        try:
            organisation, password = organisation_create(
                name=options["name"], department=options["department"], administrator=username
            )
        except AccountError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{organisation} is made. {username} signs in with {password}\n"
            "The password is shown only now, and must be changed at the first sign-in."
        )
