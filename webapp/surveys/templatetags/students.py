"""Template words of the students' pages."""

from django import template

register = template.Library()


@register.filter
def steps(count: int, behind: int) -> list[bool]:
    """Return one entry a question of a section: whether it is behind."""
    return [k < behind for k in range(count)]
