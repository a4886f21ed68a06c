"""Template tags and filters of the students' pages."""

from django import template

register = template.Library()


@register.filter
def steps(count: int, behind: int) -> list[bool]:
    """Return one entry for each question of a section: True if it is done."""
    return [k < behind for k in range(count)]
