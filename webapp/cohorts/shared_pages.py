"""Additions of cohorts to the rail, the home page and the search."""

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts import demonstration
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import sentence_on_page
from webapp.cohorts.selectors.cohorts import (
    cohort_listing,
    open_drafts,
)
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.translation.lazy import gettext_lazy

HOME_COHORTS = 5
MAX_HITS = 10


def register() -> None:
    """Register rail line, panel, next steps, facts, buttons, search, names and demonstration."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Cohorts"),
            "users",
            "cohorts:list",
            order=10,
            counted=Cohort,
        )
    )
    hooks.register_home_panel(hooks.HomePanel("cohorts/_home_panel.html", home_panel, order=10))
    hooks.register_home_fact(home_fact)
    hooks.register_home_action("cohorts/_home_action.html")
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)
    hooks.register_naming(sentence_on_page)
    hooks.register_demonstration(demonstration.load, order=10)


def home_panel(user: User) -> dict[str, Any] | None:
    """Return the last changed cohorts; None if there are none."""
    listing = cohort_listing(user, {}, size=HOME_COHORTS)
    return {"cohorts": listing.rows} if listing else None


def home_fact(user: User) -> str:
    """Return a fact for the home page, such as '4 cohorts'."""
    count = hooks.rail_counts(user)[Cohort]
    return counted(count, "cohort") if count else ""


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the steps to create a first cohort and to finish imports."""
    if not user.is_staff_member:
        return
    if not owned_by(Cohort, user).exists():
        yield hooks.NextStep(
            _("Import a cohort"),
            _(
                "A survey file, one row a student. You check every column before anything is "
                "imported."
            ),
            reverse("cohorts:upload"),
            _("Import a cohort"),
            icon="upload",
            order=10,
        )
    for draft in open_drafts(user)[:3]:
        yield hooks.NextStep(
            _("Finish importing %(filename)s") % {"filename": draft.filename},
            ngettext(
                "%(count)s row is waiting to be checked. Nothing is imported yet.",
                "%(count)s rows are waiting to be checked. Nothing is imported yet.",
                draft.n_rows,
            )
            % {"count": f"{draft.n_rows:,}"},
            draft.get_absolute_url(),
            _("Go on"),
            icon="file-warning",
            tone="warning",
            order=20,
        )


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Find cohorts by name."""
    for cohort in light(owned_by(Cohort, user)).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("cohorts:cohort", args=[cohort.pk])
        detail = ngettext(
            "Cohort of %(count)s student", "Cohort of %(count)s students", cohort.n_students
        ) % {"count": f"{cohort.n_students:,}"}
        yield hooks.SearchHit(cohort.name, detail, address, "users")
