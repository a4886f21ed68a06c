"""The language of staff, in which sentences are stored whoever acts."""

from typing import Any

from django.conf import settings
from django.utils import translation


def staff_language() -> Any:
    """Return a context manager in which sentences are in the language of staff.

    A page of a student has the student's language active, and staff read what it stores.
    """
    return translation.override(settings.LANGUAGE_CODE)
