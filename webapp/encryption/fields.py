"""Encryption of values before they reach the database, if the installation sets a key.

``ENCRYPTION_KEYS`` holds comma-separated Fernet keys: the first encrypts, all decrypt. To change
keys, put the new one first, run ``manage.py encrypt_again``, and remove the old ones.
Without a key, values are stored as plain text. After a key is set, these are read as before and
encrypted when they are next written, or by that command.

Short texts about a person (names, numbers, e-mails) use AES-SIV under keys derived from the same
ones: a list of thousands is read in milliseconds, and equal numbers can be found.
"""

import base64
import binascii
import hashlib
import json
import secrets
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import lookups

MARK = "fernet:"  # no JSON begins with this
TEXT_MARK = "siv:"
_NONCE = 12  # random bytes before a text that nobody looks up
_UNKNOWN_KEY = "A value was encrypted with a key that ENCRYPTION_KEYS does not hold."


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
        raise ImproperlyConfigured(_UNKNOWN_KEY) from error


@lru_cache(maxsize=8)
def _text_ciphers(keys: tuple[str, ...]) -> tuple[AESSIV, ...]:
    if keys:
        _cipher(keys)  # refuses what is no key
    return tuple(
        AESSIV(hashlib.sha512(b"text of a person" + base64.urlsafe_b64decode(key)).digest())
        for key in keys
    )


def seal_text(text: str, *, is_looked_up: bool = False) -> str:
    """Return the stored form of a short text; equal texts have one form if they are looked up."""
    keys = tuple(settings.ENCRYPTION_KEYS)
    if not keys or not text:
        return text
    return _sealed(_text_ciphers(keys)[0], text, is_looked_up=is_looked_up)


def _sealed(cipher: AESSIV, text: str, *, is_looked_up: bool) -> str:
    nonce = bytes(_NONCE) if is_looked_up else secrets.token_bytes(_NONCE)
    token = nonce + cipher.encrypt(text.encode(), [nonce])
    return TEXT_MARK + base64.urlsafe_b64encode(token).decode("ascii")


def unseal_text(kept: str) -> str:
    """Return the text of a stored form; ImproperlyConfigured if its key is not among ours."""
    if not kept.startswith(TEXT_MARK):
        return kept
    try:
        token = base64.urlsafe_b64decode(kept[len(TEXT_MARK) :])
    except binascii.Error:
        return kept  # a text of somebody that begins like ours
    nonce, body = token[:_NONCE], token[_NONCE:]
    for cipher in _text_ciphers(tuple(settings.ENCRYPTION_KEYS)):
        try:
            return cipher.decrypt(body, [nonce]).decode()
        except InvalidTag:
            continue
    raise ImproperlyConfigured(_UNKNOWN_KEY)


def search_key() -> bytes:
    """Return the key of digests by which texts are searched: 32 bytes, changed with the first key.

    Without the key nobody can tell from a digest what it was made of.
    """
    first = next(iter(settings.ENCRYPTION_KEYS), settings.SECRET_KEY)
    return hashlib.sha256(b"search in texts of people" + first.encode()).digest()


def stored_forms(text: str) -> list[str]:
    """Return every stored form of a text that is looked up: plain, and under each key."""
    ciphers = _text_ciphers(tuple(settings.ENCRYPTION_KEYS)) if text else ()
    return [text, *(_sealed(cipher, text, is_looked_up=True) for cipher in ciphers)]


class SealedTextField(models.TextField):
    """Field of a short text about a person, encrypted; the database cannot search in it."""

    is_looked_up = False

    def get_prep_value(self, value: Any) -> Any:
        """Return the column's text."""
        if value is None:
            return None
        return seal_text(str(value)[: self.max_length], is_looked_up=self.is_looked_up)

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        """Return the text of a column."""
        return None if value is None else unseal_text(value)

    def get_lookup(self, lookup_name: str) -> Any:
        """Return the lookup of this name; only ``isnull`` is allowed."""
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


class SealedKeyField(SealedTextField):
    """Encrypted text that is looked up as a whole: equal texts are stored equally."""

    is_looked_up = True

    def get_lookup(self, lookup_name: str) -> Any:
        """Return the lookup of this name: ``exact``, ``in`` and ``isnull`` are allowed."""
        if lookup_name in ("exact", "in"):
            return {"exact": _SealedExact, "in": _SealedIn}[lookup_name]
        return super().get_lookup(lookup_name)


class _SealedIn(lookups.In):
    """Lookup of texts by any of their stored forms, so that keys can change."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        if not hasattr(rhs, "resolve_expression"):
            rhs = [form for text in rhs for form in stored_forms(str(text))]
        self.prepare_rhs = False
        super().__init__(lhs, rhs)

    def get_db_prep_lookup(self, value: Any, connection: Any) -> Any:
        """Return the forms as they are: they are stored forms already."""
        return "%s", list(value)


class _SealedExact(_SealedIn):
    """Lookup of one text by any of its stored forms."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        super().__init__(lhs, rhs if hasattr(rhs, "resolve_expression") else [rhs])


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
