"""Template tags and filters of the cohort pages."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.cohorts import answers_in_words
from webapp.cohorts.sources import source_in_words

register = template.Library()

_HEIGHT = 22
_BAR = 10
_GAP = 2


@register.simple_tag
def answer_bars(shares: Sequence[float], label: str = "") -> SafeString:
    """Return small bars of each answer's count; ``shares`` are 0..1 of the largest."""
    if not shares:
        return SafeString("")
    bars = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}" rx="1"></rect>',
        (
            (
                k * (_BAR + _GAP),
                f"{_HEIGHT - max(1.0, share * _HEIGHT):.1f}",
                _BAR,
                f"{max(1.0, share * _HEIGHT):.1f}",
            )
            for k, share in enumerate(shares)
        ),
    )
    width = len(shares) * (_BAR + _GAP) - _GAP
    return format_html(
        '<svg class="answer-bars" viewBox="0 0 {} {}" width="{}" height="{}" role="img" '
        'aria-label="{}">{}</svg>',
        width,
        _HEIGHT,
        width,
        _HEIGHT,
        label or _("How often each answer was given"),
        bars,
    )


@register.filter
def source_words(source: str) -> str:
    """Return the source of a request or of late arrivals in the language of the page."""
    return source_in_words(source)


@register.filter
def at(values: Sequence[str], index: int) -> str:
    """Return one entry of a sequence; "" if there is none."""
    return values[index] if 0 <= index < len(values) else ""


@register.filter
def attribute(student: Student, name: str) -> str:
    """Return a student's value in a constraint column; "" for a blank."""
    return str(student.attributes.get(name, ""))


@register.filter
def answers_of(cohort: Cohort, student: Student) -> list[str]:
    """Return a student's answers in words, in the order of the questions; "" for a blank."""
    return [answer for _, answer in answers_in_words(cohort, student)]
