"""Template tags of the demonstration's tour."""

from typing import Any

from django import template
from django.template import RequestContext

from webapp.demonstration.selectors import has_demonstration
from webapp.demonstration.tour import step_of_request

register = template.Library()


@register.inclusion_tag("demonstration/_tour.html", takes_context=True)
def tour_step(context: RequestContext) -> dict[str, Any]:
    """Return the context of the step that the address names; empty outside the tour."""
    request = context.get("request")
    shown = step_of_request(request) if request is not None else None
    return {"shown": shown, "csrf_token": context.get("csrf_token")}


@register.simple_tag(takes_context=True)
def has_tour(context: RequestContext) -> bool:
    """Return True if the reader's organisation has the results of a demonstration."""
    return has_demonstration(context["request"].user)
