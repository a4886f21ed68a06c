"""Encryption of values before they reach the database, if the installation sets a key.

``ENCRYPTION_KEYS`` holds comma-separated Fernet keys: the first encrypts, all decrypt. To change
keys, put the new one first, run ``manage.py encrypt_again``, and remove the old ones.
Without a key, values are stored as plain text. After a key is set, these are read as before and
encrypted when they are next written, or by that command.
"""

import json
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

MARK = "fernet:"  # no JSON begins with this


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
    """Return the stored form of a text: a token, or the text itself without a key."""
    keys = tuple(settings.ENCRYPTION_KEYS)
    return MARK + _cipher(keys).encrypt(text.encode()).decode("ascii") if keys else text


def unseal(kept: str) -> str:
    """Return the text of a stored form; ImproperlyConfigured if its key is not among ours."""
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
    """Field of any JSON value, encrypted as a whole; the database cannot search in it."""

    _pyi_private_set_type: Any  # what the type checker takes the values of objects to be
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str | None:
        """Return the column's text."""
        return None if value is None else seal(json.dumps(value, cls=DjangoJSONEncoder))

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        """Return the value of a column's text."""
        return None if value is None else json.loads(unseal(value))

    def to_python(self, value: Any) -> Any:
        """Return the value unchanged: forms and fixtures hold no text of ours."""
        return value

    def value_to_string(self, obj: models.Model) -> str:
        """Return the value for a fixture, readable: a dump may be loaded under another key."""
        return json.dumps(self.value_from_object(obj), cls=DjangoJSONEncoder)

    def get_lookup(self, lookup_name: str) -> Any:
        """Return the lookup of this name; only ``isnull`` is allowed."""
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None
