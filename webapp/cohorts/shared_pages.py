"""What cohorts add to the rail, the home page and the search."""

import re
from collections.abc import Iterable
from typing import Any

from django.urls import reverse

from webapp.accounts.models import User
from webapp.cohorts import demonstration
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.cohorts.selectors.cohorts import cohorts_of, open_drafts
from webapp.common import hooks
from webapp.common.selectors import owned_by

HOME_COHORTS = 5
MAX_HITS = 10
_STUDENT = re.compile(r"^(?:s-?)?(\d{1,8})$", re.IGNORECASE)


def register() -> None:
    """Add rail line, panel, next steps, facts, buttons, search and demonstration."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Roommates",
            "Cohorts",
            "users",
            "cohorts:list",
            order=10,
            count=lambda user: owned_by(Cohort, user).count(),
        )
    )
    hooks.register_home_panel(hooks.HomePanel("cohorts/_home_panel.html", home_panel, order=10))
    hooks.register_home_fact(home_fact)
    hooks.register_home_action("cohorts/_home_action.html")
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)
    hooks.register_demonstration(demonstration.load, order=10)


def home_panel(user: User) -> dict[str, Any] | None:
    """Return the last changed cohorts; None when there is none."""
    cohorts = list(cohorts_of(user)[:HOME_COHORTS])
    return {"cohorts": cohorts} if cohorts else None


def home_fact(user: User) -> str:
    """Return '4 cohorts'."""
    count = owned_by(Cohort, user).count()
    return f"{count} cohort{'' if count == 1 else 's'}" if count else ""


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Ask for a first cohort, and for unfinished imports."""
    if not user.is_staff_member:
        return
    if not owned_by(Cohort, user).exists():
        yield hooks.NextStep(
            "Import a cohort",
            "A survey file, one row a student. You check every column before anything is saved.",
            reverse("cohorts:upload"),
            "Import a cohort",
            icon="upload",
            order=10,
        )
    for draft in open_drafts(user)[:3]:
        yield hooks.NextStep(
            f"Finish importing {draft.filename}",
            f"{draft.n_rows:,} rows are waiting to be checked. Nothing is saved yet.",
            _draft_address(draft),
            "Go on",
            icon="file-warning",
            tone="warning",
            order=20,
        )


def _draft_address(draft: Draft) -> str:
    if draft.cohort_id is None:
        return reverse("cohorts:draft", args=[draft.pk])
    return reverse("cohorts:pairs-draft", args=[draft.cohort_id, draft.pk])


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Find cohorts by name and students by the id on screen."""
    for cohort in owned_by(Cohort, user).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("cohorts:cohort", args=[cohort.pk])
        detail = f"Cohort of {cohort.n_students:,} students"
        yield hooks.SearchHit(cohort.name, detail, address, "users")
    found = _STUDENT.match(query)
    if not found:
        return
    students = Student.objects.filter(
        cohort__in=owned_by(Cohort, user), number=int(found.group(1))
    ).select_related("cohort")
    for student in students[:MAX_HITS]:
        address = reverse("cohorts:cohort", args=[student.cohort_id])
        yield hooks.SearchHit(
            student.label,
            f"Student of {student.cohort.name}",
            f"{address}?tab=students&q={student.label}",
            "user",
        )
