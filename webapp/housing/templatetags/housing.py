"""Template words of the housing pages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.template import RequestContext
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from webapp.common import formats
from webapp.housing.models import Placement
from webapp.housing.request_graph import Pair
from webapp.housing.selectors.placements import RoomCard
from webapp.housing.selectors.rooms import Cell

register = template.Library()
RING = 34.56  # circumference of the ring of doubt (px), radius 5.5

_THIRDS = ("low", "middle", "high")


@register.simple_tag
def badge_words(placement: Placement) -> str:
    """The certificate of a placement in words, dated once staff changed something since."""
    gap = placement.figures.get("relative_gap")
    if placement.changes:
        when = formats.when(placement.best_at, timezone.localtime())
        return f"Best {when}, {formats.counted(placement.changes, 'change')} since"
    if gap is None:
        return "Not certified yet"
    if not formats.is_telling(gap):
        return "Too early to tell how near the best"
    return f"Within {formats.gap(gap)} of the best"


@register.simple_tag
def placement_free(n_beds: int, n_placed: int) -> str:
    """Free beds in words."""
    return f"{formats.counted(max(0, n_beds - n_placed), 'bed')} free"


@register.simple_tag
def room_words(card: RoomCard) -> str:
    """Kind of a room and how full it is."""
    if not card.room.is_open:
        return f"{card.room.kind}, {card.room.get_state_display().lower()}"
    if not card.people:
        return f"{card.room.kind}, empty"
    return f"{card.room.kind}, {'full' if not card.free else f'{card.free} free'}"


@register.simple_tag
def third_word(cell: Cell) -> str:
    """Low, middle or high among all placed pairs."""
    return _THIRDS[cell.third]


@register.simple_tag
def pair_key(cell: Cell) -> str:
    """A pair as the address names it."""
    return f"{cell.first}-{cell.second}"


@register.filter
def pairs_once(cells: Mapping[tuple[int, int], Cell]) -> list[Cell]:
    """Every pair of a room once, lowest score first."""
    return sorted((c for c in cells.values() if c.first < c.second), key=lambda c: c.score)


@register.filter
def key(values: Mapping[Any, Any], name: Any) -> Any:
    """An entry of a mapping; empty when it has none."""
    return values.get(name, "")


@register.simple_tag(takes_context=True)
def hall_query(context: RequestContext, hall: str) -> str:
    """The query of the page with another hall: the view and what to look for stay."""
    kept = context.get("kept", {})
    stays = {name: kept[name] for name in ("view", "look", "kind", "designation") if name in kept}
    return urlencode({"hall": hall, **stays})


@register.simple_tag(takes_context=True)
def view_query(context: RequestContext, view: str) -> str:
    """The query of the page in another view: all filters stay."""
    kept = context.get("kept", {})
    stays = {name: value for name, value in kept.items() if name not in ("view", "page", "whole")}
    return urlencode({"view": view, **stays})


@register.simple_tag
def doubt_ring(share: float, label: str) -> SafeString:
    """A ring filled to a share; ``label`` names it for readers of screens, "" hides it."""
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
    """Members of a group that is not split, as :func:`group_sketch` takes them."""
    return [members]


@register.simple_tag
def group_sketch(parts: Sequence[Sequence[int]], kept: Sequence[Pair], cut: Sequence[Pair]) -> str:
    """A group as dots on a ring, coloured by part; dashes for the requests that are cut."""
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
    """What is decided about a room, in a word."""
    if not card.room.is_open:
        return card.room.get_state_display()
    if card.is_locked:
        return "Locked"
    if card.is_accepted:
        return "Accepted"
    return "Undecided" if card.people else "Empty"
