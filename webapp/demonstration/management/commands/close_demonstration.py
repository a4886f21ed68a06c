"""Command that closes the demonstration: its three people can no longer sign in."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.demonstration.management.commands.load_demonstration import PASSWORD_FILE, PEOPLE


class Command(BaseCommand):
    """Command, because pages always keep one administrator per organisation who can sign in."""

    help = "Switch the three people of the demonstration off and forget their password."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Switch the three accounts off; data of the demonstration and added people stay.

        The three are named, so that an organisation which stayed in use is not locked out.
        """
        people = User.objects.filter(username__in=[name for name, _ in PEOPLE])
        for user in people.filter(is_active=True):
            user.is_active = False
            user.save(update_fields=["is_active"])
            audit(None, "switched off", user, organisation=user.organisation)
        (settings.INSTANCE_DIR / PASSWORD_FILE).unlink(missing_ok=True)
        self.stdout.write("demo-staff, demo-viewer and demo-admin cannot sign in any more.")
        organisations = people.values("organisation")
        added = User.objects.filter(organisation__in=organisations, is_active=True)
        if added:
            names = ", ".join(user.get_username() for user in added)
            self.stdout.write(f"Others of their organisation still can: {names}.")
