"""Late arrivals as an act: whether it can be undone, and why not.

Each application that stores something about a student registers a function that looks for it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.selectors.cohorts import halves_within

# Returns a sentence for each student, by number, about whom something was stored since they came.
Contradictions = Callable[[Cohort, Mapping[int, LateArrivals]], Mapping[int, str]]

MAX_LISTED = 5  # additions on the page of a cohort

_sources: list[Contradictions] = []


def register_contradictions(function: Contradictions) -> None:
    """Add a source of reasons why late arrivals cannot be removed any more.

    The function gets the cohort and the arrivals by student number.
    """
    _sources.append(function)


def undo_refusals(cohort: Cohort, arrivals: Sequence[LateArrivals]) -> dict[int, str]:
    """Return why each addition of students cannot be undone, by key; "" if it can."""
    found = {
        one.pk: _("This was undone already by %(undone_by)s.") % {"undone_by": one.undone_by}
        if one.undone_at
        else ""
        for one in arrivals
    }
    late = {
        number: one
        for one in arrivals
        if one.undone_at is None
        for number in range(one.first_number, one.last_number + 1)
    }
    if not late:
        return found
    for source in (_own_contradictions, *_sources):
        reasons = source(cohort, late)
        for number in sorted(reasons):
            if not found[late[number].pk]:
                found[late[number].pk] = reasons[number]
    return found


@dataclass(frozen=True, slots=True)
class LateAddition:
    """One addition of students on the page of a cohort; ``refusal`` is "" if it can be undone."""

    arrivals: LateArrivals
    refusal: str

    @property
    def dialog(self) -> str:
        """The id of the dialog that asks before the undo."""
        return f"undo-late-{self.arrivals.pk}"


def late_additions(cohort: Cohort) -> list[LateAddition]:
    """Return the last additions of students to a cohort, each with why it cannot be undone."""
    latest = list(cohort.late_arrivals.select_related("user").defer("brought")[:MAX_LISTED])
    refusals = undo_refusals(cohort, latest) if latest else {}
    return [LateAddition(one, refusals[one.pk]) for one in latest]


def attributes_digest(attributes: Mapping[str, Any]) -> str:
    """Return a digest of a student's rules and needs; a blank counts as none."""
    filled = sorted((name, value) for name, value in attributes.items() if value)
    return hashlib.sha256(json.dumps(filled).encode()).hexdigest()[:12]


def _own_contradictions(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return students with past roommates, changed needs, a half, or an open import."""
    found: dict[int, str] = {}
    students = cohort.students.filter(number__in=late).values_list(
        "number", "attributes", "past_room", "pair_as_first", "pair_as_second"
    )
    for number, attributes, *roommates in students:
        if any(roommates):
            found[number] = _("S-%(number)s has a past roommate by now.") % {"number": number}
        elif attributes_digest(attributes) != late[number].digests.get(str(number)):
            found[number] = _("The needs or rules of S-%(number)s were changed since.") % {
                "number": number
            }
    for half in halves_within(cohort):
        for number in half.students.filter(number__in=late).values_list("number", flat=True):
            found.setdefault(
                number,
                _("S-%(number)s is also in %(half)s, which was split since.")
                % {"number": number, "half": half.name},
            )
    return found | _named_in_drafts(cohort, late)


def _named_in_drafts(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return late arrivals if an open file names them, or anybody after them, by position."""
    drafts = [draft for draft in cohort.drafts.exclude(purpose="") if draft.choices.get("same")]
    if not drafts:
        return {}
    numbers = list(cohort.students.values_list("number", flat=True))
    last = {}
    for draft in drafts:
        position = min(max(draft.choices["same"].values()), len(numbers) - 1)
        last[draft.filename] = numbers[position]
    return {
        number: _("Somebody chose students by hand in the unfinished import of %(name)s.")
        % {"name": name}
        for name, highest in last.items()
        for number in late
        if number <= highest
    }
