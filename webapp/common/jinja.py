"""Functions that Jinja templates share with Django's."""

from typing import Any

from django.utils.translation import gettext
from jinja2 import Environment

from webapp.common import formats
from webapp.common.templatetags.interface import badge, icon


def environment(**options: Any) -> Environment:
    """Return the environment of the Jinja templates."""
    made = Environment(**options, trim_blocks=True, lstrip_blocks=True)  # noqa: S701 - Django's autoescape is among them
    made.filters |= {"number": formats.number, "per_cent": formats.per_cent}
    made.globals |= {"badge": badge, "icon": icon, "_": gettext}
    return made
