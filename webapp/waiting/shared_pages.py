"""Additions of waiting lists to shared pages."""

from collections.abc import Iterable

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common import hooks
from webapp.common.selectors import owned_by
from webapp.housing.models import OfferState, Placement, WaitingOffer
from webapp.residents.models import ResidentPage
from webapp.residents.page_parts import PagePart, register_page_part
from webapp.waiting.models import MoveWish
from webapp.waiting.selectors import movable_place, needs_a_call, offers_of


def register() -> None:
    """Register next steps, the part of students' pages, and what is removed with a cohort."""
    hooks.register_next_steps(next_steps)
    hooks.register_cohort_contents(cohort_contents)
    register_page_part(page_part)


def page_part(page: ResidentPage) -> PagePart | None:
    """Return the lines about another bed on the page of a student who has one."""
    place = movable_place(page.student)
    if place is None:
        return None
    wish = place.placement.move_wishes.waiting().filter(student=page.student).first()
    return PagePart("waiting/student/_home_part.html", {"wish": wish}, is_below=True)


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return the offers of beds that are removed with a cohort."""
    count = WaitingOffer.objects.filter(placement__cohort=cohort).count()
    if count:
        words = ngettext(
            "%(count)s offer of a bed",
            "%(count)s offers of beds",
            count,
        ) % {"count": f"{count:,}"}
        yield hooks.CohortContent(words)
    count = MoveWish.objects.filter(placement__cohort=cohort).count()
    if count:
        words = ngettext(
            "%(count)s wish for another bed",
            "%(count)s wishes for other beds",
            count,
        ) % {"count": f"{count:,}"}
        yield hooks.CohortContent(words)


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the placements with offers that reached nobody by mail."""
    if not user.is_staff_member:
        return
    placements = owned_by(Placement, user).filter(
        published_at__isnull=False, waiting_offers__state=OfferState.OPEN
    )
    for placement in placements.only("name", "organisation").distinct()[:3]:
        calls = sum(map(needs_a_call, offers_of(placement).filter(state=OfferState.OPEN)))
        if calls:
            yield hooks.NextStep(
                ngettext(
                    "Phone %(count)s student about an offered bed",
                    "Phone %(count)s students about an offered bed",
                    calls,
                )
                % {"count": f"{calls:,}"},
                gettext("%(placement)s: no mail reached them, and the deadline is running.")
                % {"placement": placement.name},
                reverse("waiting:list", args=[placement.pk]),
                gettext("Open the waiting list"),
                icon="clock",
                tone="warning",
                order=3,
            )
