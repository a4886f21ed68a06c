"""Context of every page: whether this person sees names of students, and hides them now."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from webapp.cohorts.naming import are_hidden, may_see_names


def names(request: HttpRequest) -> dict[str, Any]:
    """Return ``names_switch`` ("hide", "show" or "") for the head of the page."""
    return {"names_switch": SimpleLazyObject(lambda: _switch(request))}


def _switch(request: HttpRequest) -> str:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or not may_see_names(user):
        return ""
    return "show" if are_hidden(request) else "hide"
