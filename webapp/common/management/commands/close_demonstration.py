"""Close the demonstration: nobody signs in as its people any more."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.management.commands.load_demonstration import PASSWORD_FILE, PEOPLE


class Command(BaseCommand):
    """Pages cannot do it, since each organisation keeps an administrator who can sign in."""

    help = "Switch the people of the demonstration off and forget their password."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Switch off who can sign in; what the demonstration made stays, and nobody sees it."""
        people = User.objects.filter(username__in=[name for name, _ in PEOPLE], is_active=True)
        for user in people:
            user.is_active = False
            user.save(update_fields=["is_active"])
            audit(None, "switched off", user, organisation=user.organisation)
        (settings.INSTANCE_DIR / PASSWORD_FILE).unlink(missing_ok=True)
        self.stdout.write("The people of the demonstration cannot sign in any more.")
