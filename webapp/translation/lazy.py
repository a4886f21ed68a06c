"""Texts of constants, which are translated when they are shown and not when a module is imported.

In classes of forms and models, Django's own function is used.
"""

from typing import cast

from django.utils import translation


def gettext_lazy(text: str) -> str:
    """Return a text that is translated whenever it is used.

    It has the methods of a string, as which it is typed. Call ``str`` on it before it is stored.
    """
    return cast(str, translation.gettext_lazy(text))
