"""Template tags and filters of the housing pages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.template import RequestContext
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.common import formats
from webapp.housing.models import Placement
from webapp.housing.request_graph import Pair
from webapp.housing.selectors.placements import RoomCard
from webapp.housing.selectors.rooms import Cell

register = template.Library()
RING = 34.56  # circumference of the uncertainty ring (px), radius 5.5

_THIRDS = ("low", "middle", "high")


@register.filter
def by_kind(placement: Placement, words: str) -> str:
    """Return the first of two words for a placement in rooms, the second for one in pairs."""
    rooms, _rest, pairs = words.partition("|")
    return pairs if placement.is_pairs else rooms


@register.filter
def in_pairs(n_students: int) -> int:
    """Return how many pairs some students are."""
    return n_students // 2


@register.simple_tag
def badge_words(placement: Placement) -> str:
    """Return the certificate of a placement in words, dated if staff changed rooms since."""
    gap = placement.figures.get("relative_gap")
    if placement.changes and placement.best_at is not None:
        when = formats.when(placement.best_at, timezone.localtime())
        return ngettext(
            "Best %(when)s, %(count)s change since",
            "Best %(when)s, %(count)s changes since",
            placement.changes,
        ) % {"when": when, "count": f"{placement.changes:,}"}
    if gap is None:
        return _("Not certified yet")
    if not formats.is_telling(gap):
        return _("Too early to tell how near the best")
    return _("Within %(gap)s of the best") % {"gap": formats.rough_gap(gap)}


@register.simple_tag
def room_words(card: RoomCard) -> str:
    """Return the kind of a room and the number of its beds taken, in words."""
    if not card.room.is_open:
        return f"{card.room.kind_in_words}, {card.room.get_state_display().lower()}"
    offered = _("%(offers)s offered") % {"offers": len(card.offers)} if card.offers else ""
    if not card.people:
        words = "empty"
    elif card.extra_taken:
        words = ngettext(
            "%(count)s extra bed taken", "%(count)s extra beds taken", card.extra_taken
        ) % {"count": f"{card.extra_taken:,}"}
    else:
        words = (
            _("%(free)s free") % {"free": card.free} if card.free else ("" if offered else "full")
        )
    return ", ".join(filter(None, (card.room.kind_in_words, words, offered)))


@register.simple_tag
def third_word(cell: Cell) -> str:
    """Return low, middle or high among all placed pairs."""
    return _THIRDS[cell.third]


@register.simple_tag
def pair_key(cell: Cell) -> str:
    """Return a pair as written in the address."""
    return f"{cell.first}-{cell.second}"


@register.filter
def pairs_once(cells: Mapping[tuple[int, int], Cell]) -> list[Cell]:
    """Return every pair of a room once, lowest score first."""
    return sorted((c for c in cells.values() if c.first < c.second), key=lambda c: c.score)


@register.filter
def key(values: Mapping[Any, Any], name: Any) -> Any:
    """Return an entry of a mapping, or "" if there is none."""
    return values.get(name, "")


@register.simple_tag(takes_context=True)
def hall_query(context: RequestContext, hall: str) -> str:
    """Return the page's query for another hall; the view and most filters stay."""
    kept = context.get("kept") or {}
    stays = {name: kept[name] for name in ("view", "look", "kind", "designation") if name in kept}
    return urlencode({"hall": hall, **stays})


@register.simple_tag(takes_context=True)
def view_query(context: RequestContext, view: str) -> str:
    """Return the page's query for another view; all filters stay."""
    kept = context.get("kept") or {}
    stays = {name: value for name, value in kept.items() if name not in ("view", "page", "whole")}
    return urlencode({"view": view, **stays})


@register.simple_tag
def uncertainty_ring(share: float, label: str) -> SafeString:
    """Return a ring filled to a share; ``label`` names it for screen readers, "" hides it."""
    role = format_html('role="img" aria-label="{}"', label) if label else 'aria-hidden="true"'
    return format_html(
        '<svg class="doubt-ring" viewBox="0 0 13 13" {}><circle cx="6.5" cy="6.5" r="5.5"/>'
        '<circle class="doubt-ring__part" cx="6.5" cy="6.5" r="5.5" stroke-dasharray="{} {}"/>'
        "</svg>",
        SafeString(role),
        f"{RING * share:.2f}",
        f"{RING:.2f}",
    )


@register.filter
def in_one_part(members: Sequence[int]) -> list[Sequence[int]]:
    """Return a group that is not split, as :func:`group_sketch` takes it."""
    return [members]


@register.simple_tag
def group_sketch(parts: Sequence[Sequence[int]], kept: Sequence[Pair], cut: Sequence[Pair]) -> str:
    """Return a group as dots on a ring, coloured by part, with dashes for the requests cut."""
    members = [number for part in parts for number in part]
    angles = {n: 2 * math.pi * k / len(members) - math.pi / 2 for k, n in enumerate(members)}
    at = {
        n: (round(30 + 22 * math.cos(angle), 1), round(26 + 20 * math.sin(angle), 1))
        for n, angle in angles.items()
    }
    lines = format_html_join(
        "",
        '<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>',
        (
            (*at[a], *at[b], "sketch__cut" if pairs is cut else "sketch__kept")
            for pairs in (kept, cut)
            for a, b in pairs
        ),
    )
    dots = format_html_join(
        "",
        '<circle cx="{}" cy="{}" r="4.5" class="sketch__part-{}"/>',
        ((*at[n], k % 3) for k, part in enumerate(parts) for n in part),
    )
    return format_html(
        '<svg class="sketch" viewBox="0 0 60 52" aria-hidden="true">{}{}</svg>', lines, dots
    )


@register.simple_tag
def room_state(card: RoomCard) -> str:
    """Return the state of a room in a word."""
    if not card.room.is_open:
        return card.room.get_state_display()
    if card.is_locked:
        return _("Locked")
    if card.is_accepted:
        return _("Accepted")
    return _("Undecided") if card.people else _("Empty")
