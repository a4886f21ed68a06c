"""Environment variables as values; a value that cannot be one stops the start and is named.

django-environ 0.14 was tried and not taken: it reads ``SPREAD_PIXELS=2e7`` as 27, a misspelt
``TRUST_PROXY=ture`` as no, a secret that begins with ``$`` as the name of another variable, and
``smtps://`` as STARTTLS.
"""

import os

from django.core.exceptions import ImproperlyConfigured

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """Return a variable as it is; the default if it is unset or empty."""
    return os.environ.get(name) or default


def flag(name: str, default: bool = False) -> bool:
    """Return True for 1, true, yes or on, and False for 0, false, no or off, in any case."""
    word = text(name).strip().lower()
    if word and word not in _YES | _NO:
        raise refused(name, "1 or 0")
    return word in _YES if word else default


def listed(name: str, default: str = "") -> list[str]:
    """Return the comma-separated items of a variable."""
    words = (word.strip() for word in text(name, default).split(","))
    return [word for word in words if word]


def whole_number(name: str, default: int, least: int = 0) -> int:
    """Return a whole number that is not below the least one."""
    try:
        number = int(text(name, str(default)))
    except ValueError as error:
        raise refused(name, f"a whole number from {least}") from error
    if number < least:
        raise refused(name, f"a whole number from {least}")
    return number


def number(name: str, default: float) -> float:
    """Return a number from 0, such as 0.5, 2e7 or inf."""
    try:
        value = float(text(name, str(default)))
    except ValueError as error:
        raise refused(name, "a number from 0") from error
    if not value >= 0:  # nan is not
        raise refused(name, "a number from 0")
    return value


def refused(name: str, expected: str) -> ImproperlyConfigured:
    """Return the error of a variable whose value cannot be one."""
    return ImproperlyConfigured(f"{name}: expected {expected}, received {os.environ[name]!r}.")
