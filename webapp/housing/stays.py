"""Stays: from when to when a student has a bed, and how many people a room holds at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from django.utils.translation import gettext as _

from webapp.common.formats import day, span
from webapp.housing.models import Place, Placement, Term


@dataclass(frozen=True, slots=True)
class Stay:
    """The first and the last day of a bed, both included; without an end where none is known."""

    first: date = date.min
    last: date = date.max

    def overlaps(self, other: "Stay") -> bool:
        """Return True if two stays share a day."""
        return self.first <= other.last and other.first <= self.last

    @property
    def words(self) -> str:
        """The days in words, such as "20 Aug 2026 to 15 Dec 2026"; "" without any day."""
        has_first, has_last = self.first != date.min, self.last != date.max
        if has_first and has_last:
            return span(day(self.first), day(self.last))
        if has_first:
            return _("from %(first)s") % {"first": day(self.first)}
        return _("until %(last)s") % {"last": day(self.last)} if has_last else ""


ALWAYS = Stay()
NO_DATES: Mapping[int, Stay] = MappingProxyType({})  # nobody has dates of their own


def stay_of_term(term: Term | None) -> Stay:
    """Return the days of a term; without a term, a stay without a first and a last day."""
    return ALWAYS if term is None else Stay(term.starts_on, term.ends_on)


def stay_of(term: Term | None, arrives_on: date | None, leaves_on: date | None) -> Stay:
    """Return the days of a bed: a student's own days, else those of the term."""
    usual = stay_of_term(term)
    return Stay(arrives_on or usual.first, leaves_on or usual.last)


def place_stay(place: Place, term: Term | None) -> Stay:
    """Return the days of a student's bed."""
    return stay_of(term, place.arrives_on, place.leaves_on)


def stays_in(placement: Placement) -> dict[int, Stay]:
    """Return the stays of the students with dates of their own, by number on screen."""
    rows = placement.places.dated().values_list("number", "arrives_on", "leaves_on")
    return {
        number: stay_of(placement.term, arrives_on, leaves_on)
        for number, arrives_on, leaves_on in rows
    }


def most_at_once(stays: Iterable[Stay]) -> int:
    """Return the largest number of stays that share a day.

    A day on which the largest number is present is the first day of one of the stays.
    """
    known = list(stays)
    if all(stay is ALWAYS for stay in known):
        return len(known)
    return max(sum(one.first <= stay.first <= one.last for one in known) for stay in known)


def successive_groups(beds: Mapping[int, tuple[int, Stay]]) -> list[list[int]]:
    """Return the people of a room in groups in which each bed is used once.

    Parameters
    ----------
    beds : mapping of a student's number to the bed and the days of the bed.

    Returns
    -------
    list of lists of numbers
        The first group has somebody in every bed in use: the people of the day on which most are
        there, and for the other beds those who come first. One group if nobody follows another.
    """
    groups, rest = [], dict(sorted(beds.items()))
    while rest:
        day = max(
            (stay.first for _, stay in rest.values()),
            key=lambda day: sum(one.first <= day <= one.last for _, one in rest.values()),
        )
        order = sorted(
            rest,
            key=lambda n: (not rest[n][1].first <= day <= rest[n][1].last, rest[n][1].first, n),
        )
        chosen: dict[int, int] = {}
        for number in order:
            chosen.setdefault(rest[number][0], number)
        groups.append(sorted(chosen.values()))
        for number in chosen.values():
            del rest[number]
    return groups


def first_free_bed(stay: Stay, taken: Iterable[tuple[int, Stay]]) -> int:
    """Return the lowest bed that nobody else has on a day of a stay; beds count from 1."""
    used = {bed for bed, other in taken if other.overlaps(stay)}
    return next(bed for bed in range(1, len(used) + 2) if bed not in used)
