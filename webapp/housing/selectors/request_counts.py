"""Counts of a cohort's requests: counted by a placement, honoured, and their cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Sum
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort
from webapp.common.formats import number, signed
from webapp.housing.models import Placement
from webapp.housing.request_graph import RequestPairs
from webapp.housing.rules import MUST, NO, WISH_STRENGTHS, PlacementRules, strength_in_words
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.publication import published_placements
from webapp.housing.selectors.wish_effects import strengths_context
from webapp.translation.lazy import gettext_lazy

COMPARED = ("mutual", "one_sided", "wish")  # the rules that the panel sets
MOST_COMPARED = 3
WORDS = {MUST: gettext_lazy("a must"), NO: gettext_lazy("not counted")}


@dataclass(frozen=True, slots=True)
class CostAgainst:
    """Cost of the reference's way of counting against another scenario, in score."""

    placement: Placement
    words: str
    cost: str


def reference_placement(cohort: Cohort) -> Placement | None:
    """Return the reference placement of the page: the published one, or the last changed.

    Of several published ones it is that of the term of today, else of the next term.
    """
    placements = cohort.placements.select_related("cohort", "model", "job", "buildings")
    published = published_placements(cohort)
    if published:
        return placements.get(pk=published[0].pk)
    return placements.order_by("-updated_at").first()


def counts_context(cohort: Cohort, placement: Placement, requests: RequestPairs) -> dict[str, Any]:
    """Return how a placement counts requests: its rules, the honoured requests and the cost."""
    rules = PlacementRules.from_json(placement.rules)
    context: dict[str, Any] = {"reference": placement, "rules": rules}
    context |= strengths_context(rules, f"placement={placement.pk}")
    if not placement.is_computed:
        return context
    rooms = PlacementRooms(placement)
    own = _total(placement)
    return context | {
        "reference_rooms": rooms,
        "honoured": [
            (title, sum(rooms.is_together(*pair) for pair in pairs), len(pairs))
            for title, pairs in (
                (_("Mutual"), requests.mutual),
                (_("One-sided"), requests.one_sided),
            )
        ],
        "total": number(own, 1),
        "costs": [
            CostAgainst(other, words, signed(own - _total(other), 1) or "0")
            for other, words in _comparable(cohort, placement, rules)
        ],
    }


def _total(placement: Placement) -> float:
    """Return the score of all rooms: half the sum of every student's mean over pairs."""
    found = placement.places.present().aggregate(sum=Sum("score"))
    return (found["sum"] or 0.0) / 2


def _comparable(
    cohort: Cohort, placement: Placement, rules: PlacementRules
) -> list[tuple[Placement, str]]:
    """Return the scenarios that differ only in how requests count, with that difference."""
    found = []
    others = cohort.placements.filter(
        revision__gt=0, model=placement.model_id, buildings=placement.buildings_id
    ).exclude(pk=placement.pk)
    for other in others.order_by("-updated_at"):
        theirs = PlacementRules.from_json(other.rules)
        if _rest(theirs) == _rest(rules) and theirs != rules:
            found.append((other, _difference(rules, theirs)))
    return found[:MOST_COMPARED]


def _rest(rules: PlacementRules) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(rules).items() if name not in (*COMPARED, "price")
    }


def _difference(own: PlacementRules, theirs: PlacementRules) -> str:
    """Return in words how another scenario counts requests differently."""
    wish = _("a wish: %(strength)s") % {"strength": strength_in_words(theirs.wish, WISH_STRENGTHS)}
    parts: Sequence[tuple[str, str, str]] = (
        (_("mutual"), own.mutual, theirs.mutual),
        (_("one-sided"), own.one_sided, theirs.one_sided),
    )
    words = [
        f"{title} {WORDS.get(how, wish)}"
        for title, ours, how in parts
        if ours != how or (how not in WORDS and own.wish != theirs.wish)
    ]
    return ", ".join(words) or _("counted alike")
