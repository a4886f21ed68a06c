"""Values that are encrypted before they reach the database, where the installation sets a key.

``ENCRYPTION_KEYS`` holds Fernet keys with commas: the first encrypts, all decrypt, so that a new
key is put before the old ones, ``manage.py encrypt_again`` runs, and the old ones are taken away.
Without a key values are kept as they are; with one, what is already there is read as before and
encrypted when it is next written, or by that command.
"""

import json
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

MARK = "fernet:"  # no JSON begins so


@lru_cache(maxsize=8)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured(
            "ENCRYPTION_KEYS holds something that is no Fernet key: "
            "`manage.py make_encryption_key` makes one."
        ) from error


def seal(text: str) -> str:
    """Return what is kept of a text: a token, or the text itself where there is no key."""
    keys = tuple(settings.ENCRYPTION_KEYS)
    return MARK + _cipher(keys).encrypt(text.encode()).decode("ascii") if keys else text


def unseal(kept: str) -> str:
    """Return the text of what is kept; ImproperlyConfigured where its key is not among ours."""
    if not kept.startswith(MARK):
        return kept
    keys = tuple(settings.ENCRYPTION_KEYS)
    try:
        if not keys:
            raise InvalidToken
        return _cipher(keys).decrypt(kept[len(MARK) :]).decode()
    except InvalidToken as error:
        raise ImproperlyConfigured(
            "A value was encrypted with a key that ENCRYPTION_KEYS does not hold."
        ) from error


class SealedJSONField(models.TextField):
    """Any JSON value, encrypted as a whole; the database cannot search in it."""

    def get_prep_value(self, value: Any) -> str | None:
        """Return the column's text."""
        return None if value is None else seal(json.dumps(value, cls=DjangoJSONEncoder))

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        """Return the value of a column's text."""
        return None if value is None else json.loads(unseal(value))

    def to_python(self, value: Any) -> Any:
        """Return the value as it is: forms and fixtures hold no text of ours."""
        return value

    def value_to_string(self, obj: models.Model) -> str:
        """Return the value for a fixture, readable: a dump is read where the key may be another."""
        return json.dumps(self.value_from_object(obj), cls=DjangoJSONEncoder)

    def get_lookup(self, lookup_name: str) -> Any:
        """Allow only the question whether there is a value."""
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None
