"""Template words of the housing pages."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils import timezone

from webapp.common import formats
from webapp.housing.models import Placement
from webapp.housing.selectors.placements import RoomCard
from webapp.housing.selectors.rooms import Cell

register = template.Library()

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
