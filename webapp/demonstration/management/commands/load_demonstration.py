"""Command that loads the demonstration: an organisation, its people, and data of applications."""

import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from webapp.accounts.models import Organisation, Role, User
from webapp.common import hooks

ORGANISATION = "Northfield University"
DEPARTMENT = "Residential Life"
PASSWORD_FILE = "demonstration_password"  # noqa: S105 - a file name
PEOPLE = (
    ("demo-staff", Role.STAFF),
    ("demo-viewer", Role.VIEWER),
    ("demo-admin", Role.ADMINISTRATOR),
)
OPERATOR = "demo-admin"


class Command(BaseCommand):
    """Idempotent command: existing objects stay unchanged."""

    help = "Load the demonstration organisation, its people, cohorts and images."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the option of the first start."""
        parser.add_argument(
            "--only-first",
            action="store_true",
            help="do nothing where an organisation exists, so that what was removed stays removed",
        )

    @transaction.atomic  # an interrupted run leaves no organisation that looks loaded
    def handle(self, *args: Any, **options: Any) -> None:
        """Make the missing objects and print what exists."""
        if options["only_first"] and Organisation.objects.exists():
            return
        self.stdout.write("Loading the demonstration")
        organisation = self._organisation()
        for name, role in PEOPLE:
            if not User.objects.filter(username=name).exists():
                User.objects.create_user(
                    username=name,
                    password=self._password(),
                    organisation=organisation,
                    role=role,
                    is_operator=name == OPERATOR,
                )
        staff = User.objects.get(username=PEOPLE[0][0])
        for load in hooks.demonstrations():
            self.stdout.write(load(organisation, staff))

    def _organisation(self) -> Organisation:
        """Return the organisation of the demonstration's staff, or a new one."""
        staff = User.objects.filter(username=PEOPLE[0][0]).first()
        if staff is not None and staff.organisation is not None:
            return staff.organisation
        return Organisation.objects.get_or_create(
            name=ORGANISATION, defaults={"department": DEPARTMENT}
        )[0]

    def _password(self) -> str:
        """Return the demonstration's password: random per installation, stored with its data.

        A fixed one would open every installation that is exposed to the network.
        """
        path = settings.INSTANCE_DIR / PASSWORD_FILE
        if not path.exists():
            path.touch(mode=0o600)
            words = [secrets.choice(_WORDS) for _ in range(3)]
            path.write_text("-".join([*words, str(secrets.randbelow(90) + 10)]), encoding="ascii")
        return path.read_text(encoding="ascii").strip()


_WORDS = """
amber anchor apple aspen autumn beacon birch bridge bronze candle canvas cedar chalk cherry
clover cobalt copper coral cotton cricket daisy delta ember fable falcon feather fern forest
garden ginger glacier granite harbor hazel heron hollow indigo island ivory jasper juniper
kettle lagoon lantern lemon linen maple marble meadow mellow mint moss nectar nutmeg oak olive
opal orchard otter pebble pepper pine plum poppy prairie quartz quill raven reed river robin
saffron sage sparrow spruce stone summit sunset tamarind thistle timber topaz tulip valley
velvet violet walnut willow winter yarrow
""".split()  # noqa: SIM905 - a list of words reads better so
