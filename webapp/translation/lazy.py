"""Texts of constants, which are translated when they are shown and not when a module is imported.

In classes of forms and models, Django's own function is used.
"""

from typing import Any, cast

from django.utils import text as texts
from django.utils import translation


def gettext_lazy(text: str) -> str:
    """Return a text that is translated whenever it is used.

    It has the methods of a string, as which it is typed. Call ``str`` on it before it is stored.
    """
    return cast(str, translation.gettext_lazy(text))


def pgettext_lazy(context: str, text: str) -> str:
    """Return a text like `gettext_lazy`; the context tells translators what a short word means."""
    return cast(str, translation.pgettext_lazy(context, text))


def format_lazy(text: str, **values: Any) -> str:
    """Return a text whose {names} are replaced by values, translated whenever it is used."""
    return cast(str, texts.format_lazy(text, **values))
