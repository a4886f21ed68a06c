"""Sessions in the database, with the reason why they cannot be written."""

from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import InterfaceError, OperationalError

NAMES_HIDDEN = "names_hidden"  # key of a session that hides the names of students


class SessionStore(db.SessionStore):
    """Django's sessions in the database.

    Django treats every error of an update as a session that was deleted meanwhile, and answers 400.
    A database that is full, locked or away is not the browser's fault: its own error is raised, and
    the answer is 507 or 503 in words.
    """

    def save(self, must_create: bool = False) -> Any:
        """Write the session; raise the database's error, or UpdateError for a deleted session."""
        try:
            return super().save(must_create)
        except UpdateError as error:
            if isinstance(error.__context__, OperationalError | InterfaceError):
                raise error.__context__ from None
            raise
