"""Effects of publishing a placement, in the words of the confirmation question."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.models import Cohort
from webapp.housing.models import Place, Placement
from webapp.housing.stays import place_stay, stay_of_term

NAMED = 8  # students whom a question names


def moved_between(before: Placement, after: Placement) -> int:
    """Return how many people of one placement live elsewhere in another."""
    rooms = dict(before.places.present().values_list("student_id", "room_id"))
    now = after.places.present().values_list("student_id", "room_id")
    return sum(rooms.get(student, room) != room for student, room in now)


def withdrawal_notes(placement: Placement) -> list[str]:
    """Return other applications' sentences on the effects of withdrawing a publication."""
    return [note for source in _notes for note in source(placement)]


def register_withdrawal_notes(source: Callable[[Placement], Iterable[str]]) -> None:
    """Add a source of sentences to the question before a publication is withdrawn."""
    _notes.append(source)


_notes: list[Callable[[Placement], Iterable[str]]] = []


def losing_between(before: Placement, after: Placement) -> list[int]:
    """Return the students with a bed in one placement and none in another, by number."""
    housed = before.places.with_bed().values_list("student_id", "number")
    has_bed = set(after.places.with_bed().values_list("student_id", flat=True))
    return sorted(number for student, number in housed if student not in has_bed)


def current_first(places: Iterable[Place]) -> list[Place]:
    """Return the places of one student: that of today first, then the next ones, then past ones.

    ``placement__term`` of the places is read.
    """

    def order(place: Place) -> tuple[int, int]:
        stay = place_stay(place, place.placement.term)
        return _days_away(stay.first, stay.last)

    return sorted(places, key=order)


def published_placements(cohort: Cohort) -> list[Placement]:
    """Return the published placements of a cohort: of today, then of later terms, then past."""

    def order(placement: Placement) -> tuple[int, int]:
        stay = stay_of_term(placement.term)
        return _days_away(stay.first, stay.last)

    rows = cohort.placements.filter(published_at__isnull=False).select_related("term")
    return sorted(rows.order_by("-published_at"), key=order)


def _days_away(first: date, last: date) -> tuple[int, int]:
    today = timezone.localdate()
    if first <= today <= last:
        return (0, 0)
    return (1, (first - today).days) if first > today else (2, (today - last).days)


def publish_question(placement: Placement, homeless: Sequence[int]) -> str:
    """Return the effects of publishing, for the confirmation question."""
    other = placement.replaced
    what = "roommate" if placement.is_pairs else "room"
    if other is None:
        return publish_words(homeless, None, 0, [], what)
    moved, losing = moved_between(other, placement), losing_between(other, placement)
    return publish_words(homeless, other, moved, losing, what)


def publish_words(
    homeless: Sequence[int],
    published: Placement | None,
    moved: int,
    losing: Sequence[int],
    what: str = "room",
) -> str:
    """Return sentences on students without a room or roommate, and on published beds that go.

    The publication of ``published`` ends; the students in ``losing`` have a bed only there.
    """
    parts = []
    if homeless:
        n = len(homeless)
        if what == "room":
            sentence = ngettext(
                "%(count)s student has no room: %(named)s.",
                "%(count)s students have no room: %(named)s.",
                n,
            )
        else:
            sentence = ngettext(
                "%(count)s student has no roommate: %(named)s.",
                "%(count)s students have no roommate: %(named)s.",
                n,
            )
        parts.append(sentence % {"count": f"{n:,}", "named": _named(homeless)})
    if published is not None:
        parts.append(
            ngettext(
                "%(published)s is published now, and would not be any more; %(count)s person "
                "moves.",
                "%(published)s is published now, and would not be any more; %(count)s people move.",
                moved,
            )
            % {"published": published.name, "count": f"{moved:,}"}
        )
    if losing:
        parts.append(
            ngettext(
                "%(count)s student loses a published bed: %(named)s.",
                "%(count)s students lose published beds: %(named)s.",
                len(losing),
            )
            % {"count": f"{len(losing):,}", "named": _named(losing)}
        )
    return " ".join(parts)


def _named(numbers: Sequence[int]) -> str:
    names = ", ".join(f"S-{n}" for n in numbers[:NAMED])
    more = (
        " " + _("and %(more)s more") % {"more": f"{len(numbers) - NAMED:,}"}
        if len(numbers) > NAMED
        else ""
    )
    return f"{names}{more}"
