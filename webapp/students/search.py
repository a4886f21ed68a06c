"""The search for students by name, number, e-mail or id on screen."""

from collections.abc import Iterable

from django.urls import reverse

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import Identity, Search, may_see_names, shown_names
from webapp.common import hooks
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.students.rooms import rooms_in_words

MAX_HITS = 30
MAX_COHORTS = 60  # the latest; their names stay in memory
NAMED = 50  # students whom an audit line names


def find_students(user: User, query: str) -> list[tuple[Cohort, Identity]]:
    """Return the students of the organisation that a text means, each person once.

    A person of several cohorts is found in the latest; the latest 60 cohorts are searched. Names,
    numbers and e-mails are searched only for those who may see them.
    """
    wanted, by_name = Search(query), may_see_names(user)
    found: list[tuple[Cohort, Identity]] = []
    known: set[str] = set()
    cohorts = light(owned_by(Cohort, user)).filter(half_of=None).order_by("-created_at")
    for cohort in cohorts[:MAX_COHORTS]:
        for one in wanted.find(cohort, by_name=by_name):
            key = one.label if cohort.ids_made else one.original_id.strip().casefold()
            if key not in known:
                known.add(key)
                found.append((cohort, one))
    return found


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Find students, with their rooms; write an audit line if somebody was found by identity."""
    found = find_students(user, query)
    if found and may_see_names(user):
        labels = [one.label for _, one in found]
        audit(user, "searched for students", "students", found=labels[:NAMED], count=len(labels))
    shown = found[:MAX_HITS]
    rooms = rooms_in_words([(cohort, one.number) for cohort, one in shown])
    for cohort, one in shown:
        names = shown_names(user, cohort)
        room = rooms.get((cohort.pk, one.number), "")
        yield hooks.SearchHit(
            names.text(one.number),
            f"{room}. Student of {cohort.name}" if room else f"Student of {cohort.name}",
            reverse("students:student", args=[cohort.pk, one.number]),
            "user",
        )
