"""Template tags that show a student: by name for those who may see it, else as S-1042."""

from typing import Any

from django import template
from django.template.context import RequestContext
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import ShownNames, names_on_page, sentence_on_page

register = template.Library()
_OWNERS = ("placement", "reference", "draft")  # objects with a cohort


@register.simple_tag(takes_context=True)
def student(context: RequestContext, number: Any, link: bool = False) -> SafeString:
    """Return a student of the page's cohort: the name with the id on screen, or the id alone."""
    return student_of(context, _cohort_of(context), number, link)


@register.simple_tag(takes_context=True)
def student_of(
    context: RequestContext, cohort: Cohort | None, number: Any, link: bool = False
) -> SafeString:
    """Return a student of a cohort: the name with the id on screen, or the id alone."""
    names = ShownNames() if cohort is None or not number else _names(context, cohort)
    shown = shown_student(names, number)
    if not link or cohort is None:
        return shown
    return format_html(
        '<a href="{}">{}</a>', reverse("students:student", args=[cohort.pk, number]), shown
    )


def shown_student(names: ShownNames, number: Any) -> SafeString:
    """Return the name with the id on screen as HTML, or the id alone without a name to show."""
    name = names.name(number)
    if not name:
        return format_html("S-{}", number)
    return format_html('<span class="student">{} <small>S-{}</small></span>', name, number)


@register.simple_tag(takes_context=True)
def student_text(context: RequestContext, number: Any) -> str:
    """Return a student as plain text, for labels of buttons: "José Silva (S-1042)" or "S-1042"."""
    return in_names(context, f"S-{number}")


@register.simple_tag(takes_context=True)
def in_names(context: RequestContext, sentence: Any) -> str:
    """Return a sentence with the names of the students that it mentions as S-1042."""
    cohort = _cohort_of(context)
    if cohort is None:
        return sentence_on_page(context.get("request"), str(sentence))
    return _names(context, cohort).in_words(str(sentence))


def _cohort_of(context: RequestContext) -> Cohort | None:
    for owner in _OWNERS:
        found = getattr(context.get(owner), "cohort", None)
        if isinstance(found, Cohort):
            return found
    found = context.get("cohort")
    return found if isinstance(found, Cohort) else None


def _names(context: RequestContext, cohort: Cohort) -> ShownNames:
    request = context.get("request")
    return ShownNames() if request is None else names_on_page(request, cohort)
