"""The words that templates of Jinja share with those of Django."""

from typing import Any

from jinja2 import Environment

from webapp.common import formats
from webapp.common.templatetags.interface import badge, icon


def environment(**options: Any) -> Environment:
    """Return what the templates of Jinja are read with."""
    made = Environment(**options, trim_blocks=True, lstrip_blocks=True)  # noqa: S701 - Django's autoescape is among them
    made.filters |= {"number": formats.number, "per_cent": formats.per_cent}
    made.globals |= {"badge": badge, "icon": icon}
    return made
