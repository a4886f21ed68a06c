"""Load the demonstration: an organisation, its people, and what the applications add."""

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


class Command(BaseCommand):
    """Idempotent: what is there already stays as it is."""

    help = "Load the demonstration organisation, its people, cohorts and images."

    def add_arguments(self, parser: CommandParser) -> None:
        """What the first start asks for."""
        parser.add_argument(
            "--only-first",
            action="store_true",
            help="do nothing where an organisation exists, so that what was removed stays removed",
        )

    @transaction.atomic  # one that was interrupted leaves no organisation that looks loaded
    def handle(self, *args: Any, **options: Any) -> None:
        """Make what is missing and say what is there."""
        if options["only_first"] and Organisation.objects.exists():
            return
        self.stdout.write("Loading the demonstration")
        organisation = self._organisation()
        for name, role in PEOPLE:
            if not User.objects.filter(username=name).exists():
                User.objects.create_user(
                    username=name, password=self._password(), organisation=organisation, role=role
                )
        staff = User.objects.get(username=PEOPLE[0][0])
        for load in hooks.demonstrations():
            self.stdout.write(load(organisation, staff))

    def _organisation(self) -> Organisation:
        """The organisation of its staff, whatever it is called by now; else a new one."""
        staff = User.objects.filter(username=PEOPLE[0][0]).first()
        if staff is not None and staff.organisation is not None:
            return staff.organisation
        return Organisation.objects.get_or_create(
            name=ORGANISATION, defaults={"department": DEPARTMENT}
        )[0]

    def _password(self) -> str:
        """The password of the demonstration, random for each installation, kept beside its data.

        A fixed one would be a known way into every installation that somebody exposes.
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
