"""Needs of a cohort, how many students have each, and which rooms meet it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from webapp.cohorts.models import Cohort
from webapp.housing.models import NeedMeaning, Room
from webapp.housing.rules import needs_in

MAX_SHOWN = 100  # needs of a cohort that the page lists, the most frequent first


@dataclass(frozen=True, slots=True)
class NeedWords:
    """A need in the words of students, and what rooms offer for it.

    ``n_rooms`` counts the open rooms that meet it; ``meaning`` is what staff said, if they did;
    ``guess`` are offers of rooms whose words are among those of the need.
    """

    need: str
    n_students: int
    n_rooms: int
    is_named: bool
    meaning: NeedMeaning | None
    guess: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Return True if no room names the need and staff did not say which rooms meet it."""
        return not self.is_named and self.meaning is None


def offers_of(organisation_id: int | None) -> list[str]:
    """Return everything that a room of the organisation offers, sorted."""
    rooms = Room.objects.filter(buildings__organisation=organisation_id).order_by()
    found = {offer for meets in rooms.values_list("meets", flat=True) for offer in meets}
    return sorted(found, key=str.casefold)


def needs_in_words(cohort: Cohort) -> list[NeedWords]:
    """Return the needs of a cohort, those without a room first, then the most frequent."""
    counts, words = _counted(cohort.students.values_list("attributes", flat=True), cohort)
    rooms = list(Room.objects.filter(buildings__organisation=cohort.organisation_id))
    offers = offers_of(cohort.organisation_id)
    named = {offer.casefold() for offer in offers}
    meanings = _meanings(cohort)
    found = [
        NeedWords(
            words[key],
            count,
            sum(room.is_open and key in room.met_needs for room in rooms),
            key in named,
            meanings.get(key),
            tuple(offer for offer in offers if _tokens(offer) and _tokens(offer) <= _tokens(key)),
        )
        for key, count in counts.items()
    ]
    return sorted(found, key=lambda one: (not one.is_open, -one.n_students, one.need))[:MAX_SHOWN]


def open_needs(
    cohort: Cohort, rooms: Iterable[Room], attributes: Iterable[Mapping[str, str]]
) -> list[str]:
    """Return the needs that none of the rooms names and about which staff said nothing.

    It asks the database only if such a need exists.
    """
    if not cohort.needs:
        return []
    counts, words = _counted(attributes, cohort)
    met: set[str] = set().union(*(room.met_needs for room in rooms))
    missing = [key for key, _ in counts.most_common() if key not in met]
    if not missing:
        return []
    meanings = _meanings(cohort)
    return [words[key] for key in missing if key not in meanings]


def _counted(
    attributes: Iterable[Mapping[str, str]], cohort: Cohort
) -> tuple[Counter[str], dict[str, str]]:
    counts: Counter[str] = Counter()
    words: dict[str, str] = {}
    for found in attributes:
        for need in needs_in(found, cohort.needs):
            counts[need.casefold()] += 1
            words.setdefault(need.casefold(), need)
    return counts, words


def _meanings(cohort: Cohort) -> dict[str, NeedMeaning]:
    own = NeedMeaning.objects.filter(organisation=cohort.organisation_id)
    return {one.key: one for one in own}


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
