"""Template tags and filters of the import preview."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.cohorts.templatetags.cohorts import answer_bars

register = template.Library()


def _said(action: str, fields: dict[str, object]) -> str:
    """Return a button's own fields as a query; see ``views/presses.py``."""
    named = {name.rstrip("_"): value for name, value in fields.items() if value is not None}
    return urlencode({"action": action} | named)


@register.simple_tag
def press(action: str, **fields: object) -> SafeString:
    """Return the attributes of a button that belongs to the one form of the page."""
    return format_html(
        'type="submit" form="draft-form" name="do" value="{}" hx-post="change/"',
        _said(action, fields),
    )


@register.simple_tag
def press_link(action: str, **fields: object) -> SafeString:
    """Return the attributes of a link that, with scripts, changes a part of the page."""
    return format_html('hx-post="change/" hx-vals="{}"', f'{{"do": "{_said(action, fields)}"}}')


@register.simple_tag
def press_on_change(action: str, **fields: object) -> SafeString:
    """Return the attributes of a field that is sent as soon as it changes."""
    return format_html(
        'form="draft-form" hx-post="change/" hx-trigger="change" hx-vals="{}"',
        f'{{"do": "{_said(action, fields)}"}}',
    )


@register.simple_tag
def press_meaning(column: int, position: int, answer: str) -> SafeString:
    """Return the attributes of a list of answers from which the meaning of a text is chosen."""
    field = f"meaning-{column}-{position}"
    return press_on_change("meaning", column=column, answer=answer, from_=field)


@register.simple_tag
def cause_bars(bars: Sequence[tuple[str, int]]) -> SafeString:
    """Return small bars of the number of people in every group."""
    largest = max((count for _, count in bars), default=0) or 1
    spoken = ", ".join(f"{level}: {count:,}" for level, count in bars)
    return answer_bars([count / largest for _, count in bars], spoken)


@register.filter
def absolute(value: int) -> int:
    """Return a number without its sign."""
    return abs(value)


@register.filter
def swapped(row: str) -> SafeString:
    """Mark a rendered row so that it replaces itself in the page."""
    return SafeString(row.replace("<tbody ", '<tbody hx-swap-oob="true" ', 1))
