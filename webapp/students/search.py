"""The search for students by name, number, e-mail or id on screen."""

from collections.abc import Iterable
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import (
    MAX_LABELS,
    SEARCHED,
    Identity,
    Search,
    may_see_names,
    shown_names,
)
from webapp.common import hooks
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.students.rooms import rooms_in_words
from webapp.students.search_index import may_hold, read_indexes

MAX_HITS = 30


def find_students(
    user: User, query: str, limit: int | None = None
) -> list[tuple[Cohort, Identity]]:
    """Return the students of the organisation that a text means, each person once.

    All cohorts are searched, the latest first, and a person of several is found in the latest.
    After ``limit`` students no further cohort is read. Names, numbers and e-mails are searched
    only for those who may see them.
    """
    wanted, by_name = Search(query), may_see_names(user)
    found: list[tuple[Cohort, Identity]] = []
    known: set[str] = set()
    cohorts = list(light(owned_by(Cohort, user)).filter(half_of=None).order_by("-created_at"))
    if by_name:
        read_indexes(cohorts)
    numbered = _with_number(user, wanted.number)
    for cohort in cohorts:
        if limit is not None and len(found) >= limit:
            break
        if cohort.pk not in numbered and not (by_name and may_hold(cohort, wanted)):
            continue
        for one in wanted.find(cohort, by_name=by_name):
            key = one.label if cohort.ids_made else one.original_id.strip().casefold()
            if key not in known:
                known.add(key)
                found.append((cohort, one))
    return found


def _with_number(user: User, number: int | None) -> set[UUID]:
    """Return the cohorts that have a student of a number on screen."""
    if number is None:
        return set()
    students = Student.objects.filter(cohort__organisation=user.organisation_id, number=number)
    return set(students.order_by().values_list("cohort", flat=True))


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Find students, with their rooms; write an audit line if somebody was found by identity."""
    found = find_students(user, query, limit=MAX_HITS)
    if found and may_see_names(user):
        labels = [one.label for _, one in found]
        audit(user, SEARCHED, "students", found=labels[:MAX_LABELS], count=len(labels))
    shown = found[:MAX_HITS]
    rooms = rooms_in_words([(cohort, one.number) for cohort, one in shown])
    for cohort, one in shown:
        names = shown_names(user, cohort)
        room = rooms.get((cohort.pk, one.number), "")
        yield hooks.SearchHit(
            names.text(one.number),
            _("%(room)s. Student of %(cohort)s") % {"room": room, "cohort": cohort.name}
            if room
            else _("Student of %(cohort)s") % {"cohort": cohort.name},
            reverse("students:student", args=[cohort.pk, one.number]),
            "user",
        )
