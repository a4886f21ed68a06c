"""Template context of a placement's page, for the full page and for its fragments."""

from collections.abc import Mapping
from typing import Any

from webapp.accounts.models import User
from webapp.common.listing import light
from webapp.common.parameters import whole_number
from webapp.housing.models import APART, PairState, PlacedPair, Placement
from webapp.housing.pairs.cards import pair_card
from webapp.housing.pairs.conflicts import Conflict
from webapp.housing.pairs.numbers import PairNumbers
from webapp.housing.pairs.placing import pair_conflicts
from webapp.housing.pairs.table import (
    apart_counts,
    count_standing,
    forbidden_pairs,
    pair_counts,
    pair_table,
    pair_tabs,
)
from webapp.housing.selectors.drafts import drafts_of
from webapp.housing.selectors.publication import publish_question
from webapp.matching.selectors.models import learned_since


def pairs_context(
    placement: Placement, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of a placement's page for the parameters of its URL."""
    numbers = PairNumbers(placement)
    conflicts = _conflicts(numbers)
    context: dict[str, Any] = {
        "placement": placement,
        "is_running": _is_running(placement),
        "conflicts": conflicts,
        "questions": [q["name"] for q in placement.model.questions],
        "kept": _kept(parameters),
        "rule_locks": light(placement.locks.all(), "first", "second"),
        "successor": learned_since(placement.model),
    }
    if not placement.is_computed:
        return context
    counts = pair_counts(placement)
    apart = apart_counts(placement)
    # Without a rule there is no pair to look for.
    named = forbidden_pairs(placement) if any(apart.values()) else PlacedPair.objects.none()
    forbidden = dict(named.values_list("pk", "state"))
    table = pair_table(placement, parameters, conflicts, user)
    rows = list(table.page.object_list)
    keys = [row.pk for row in rows]
    n_open = counts.of(PairState.OPEN)
    context |= {
        "table": table,
        "tabs": pair_tabs(counts, apart, table.tab),
        "decided": counts.total - n_open,
        "total": counts.total,
        "n_open": n_open,
        "forbidden": forbidden,
        "n_forbidden": len(forbidden),
        "n_unpaired": placement.n_people - 2 * count_standing(counts, forbidden.values()),
        "total_score": counts.total_score,
        "rows": rows,
        "is_apart_tab": table.tab in APART,
        "n_placed": 2 * (counts.total - counts.of(*APART)),
        "drafts": drafts_of(placement, user) if user.is_staff_member else [],
        # Called by the template only where an administrator may publish.
        "publish_question": lambda: publish_question(placement, _unpaired(placement)),
    }
    return context | _card(numbers, parameters, keys)


def drawer_context(
    placement: Placement, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of the card alone, for a click on a row of the page."""
    numbers = PairNumbers(placement)
    table = pair_table(placement, parameters, _conflicts(numbers), user)
    rows: Any = table.page.object_list
    keys = list(rows.values_list("pk", flat=True))
    context = {"placement": placement, "kept": _kept(parameters)}
    return context | _card(numbers, parameters, keys)


def _unpaired(placement: Placement) -> list[int]:
    """Return the students without a roommate: without a place, or alone in one."""
    together = placement.pairs.exclude(state__in=APART).values_list("first_number", "second_number")
    paired = {number for pair in together for number in pair}
    present = placement.places.present().order_by("turn", "number")
    return [n for n in present.values_list("number", flat=True) if n not in paired]


def _is_running(placement: Placement) -> bool:
    return placement.job is not None and placement.job.is_active


def _conflicts(numbers: PairNumbers) -> list[Conflict]:
    placement = numbers.placement
    return [] if _is_running(placement) else pair_conflicts(placement, numbers)


def _card(numbers: PairNumbers, parameters: Mapping[str, str], keys: list[int]) -> dict[str, Any]:
    """Return the opened pair's card and its neighbours in the table; nothing if none is open."""
    opened = whole_number(parameters.get("pair", ""))
    pair = None if opened is None else numbers.placement.pairs.filter(pk=opened).first()
    if pair is None:
        return {}
    card = {"card": pair_card(numbers, pair), "opened": pair.pk}
    return card | _neighbours(keys, pair.pk)


def _neighbours(keys: list[int], key: int) -> dict[str, int | None]:
    """Return the pairs before and after a pair in the order of the table."""
    if key not in keys:
        return {"previous_pair": None, "next_pair": keys[0] if keys else None}
    k = keys.index(key)
    return {
        "previous_pair": keys[k - 1] if k > 0 else None,
        "next_pair": keys[k + 1] if k + 1 < len(keys) else None,
    }


def _kept(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that every link and form of the page passes on."""
    names = ("tab", "sort", "q", "against", "page")
    return {name: parameters[name] for name in names if parameters.get(name)}
