"""Template tags of the pages of pairs: rows, badges, and the query that links keep."""

from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template import engines
from django.template.context import RequestContext
from django.utils.safestring import SafeString

from webapp.cohorts.naming import names_on_page
from webapp.cohorts.templatetags.student_names import shown_student
from webapp.common.templatetags.interface import badge
from webapp.housing.models import PairState
from webapp.matching.templatetags.matching import multiple, multiple_bar, probability
from webapp.translation.lazy import gettext_lazy as _

register = template.Library()

_STATES = {
    PairState.OPEN: (_("To decide"), "", "circle-dashed"),
    PairState.ACCEPTED: (_("Accepted"), "accent", "check"),
    PairState.LOCKED: (_("Locked"), "accent", "lock"),
    PairState.SWAPPED: (_("Swapped"), "info", "arrow-left-right"),
    PairState.REJECTED: (_("Rejected"), "", "x"),
    PairState.NEVER: (_("Never pair"), "danger", "ban"),
}


@register.simple_tag
@lru_cache
def state_badge(state: str) -> SafeString:
    """Return the badge of a pair's state; a page has fifty, so each is cached."""
    return badge(*_STATES[PairState(state)])


@register.simple_tag(takes_context=True)
def page_query(context: RequestContext, **changes: Any) -> str:
    """Return the query of the page of pairs with changes; a fragment's own URL is another."""
    kept = {**(context.get("kept") or {}), **{k: str(v) for k, v in changes.items()}}
    return urlencode({name: value for name, value in kept.items() if value not in ("", "None")})


_OF_ALL_ROWS = (
    "rows", "opened", "forbidden", "kept_query", "back", "decide_address", "swap_address",
    "placement_address",
)  # fmt: skip


@register.simple_tag(takes_context=True)
def pair_rows(context: RequestContext) -> SafeString:
    """Return the rows of a page of pairs, by a template of Jinja."""
    values = {name: context.get(name) for name in _OF_ALL_ROWS}
    names = names_on_page(context["request"], context["placement"].cohort)
    rows = engines["jinja2"].get_template("housing/pairs/_pair_rows.jinja")
    written = rows.render(
        {
            **values,
            "names": names,
            "student": partial(shown_student, names),
            "conflicted": context["table"].conflicted,
            "may_decide": context["request"].user.is_staff_member,
            "multiple": multiple,
            "multiple_bar": multiple_bar,
            "probability": probability,
            "state_badge": state_badge,
        },
        context["request"],
    )
    return SafeString(written)
