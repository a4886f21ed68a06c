"""Publishing a placement and withdrawing a publication, each confirmed and in the history."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import APART, ActKind, Placement
from webapp.housing.services.checks import check_free_elsewhere, check_suites, forbidden_numbers
from webapp.housing.services.conflicts import check_nobody_moved
from webapp.housing.services.history import event_record, offers_withdraw
from webapp.housing.services.locking import lock_placement
from webapp.housing.webhook_reports import report_published


@transaction.atomic
def placement_publish(*, user: User, placement: Placement, version: int) -> Placement:
    """Publish a placement to the students; the cohort's publication for the same term ends.

    Raises
    ------
    PlacesChangedError
        If any student got another bed since ``version``: only what was reviewed is published.
    HousingError
        If it has no rooms, is published already, shares a room with another published placement,
        or gives a bed to a student who has one on the same days in a placement for another term.
    """
    Cohort.objects.select_for_update().get(pk=placement.cohort_id)
    placement = lock_placement(placement)
    if not placement.is_computed:
        raise HousingError(_("%(placement)s has no rooms yet.") % {"placement": placement.name})
    if placement.is_published:
        raise HousingError(_("%(placement)s is published already.") % {"placement": placement.name})
    check_nobody_moved(placement, version)
    if placement.is_pairs:
        _check_pairs(placement)
    check_free_elsewhere(placement)
    check_suites(placement)
    if (other := placement.replaced) is not None:
        why = _("%(placement)s is published instead.") % {"placement": placement.name}
        _withdraw(user, lock_placement(other), why)
    placement.published_at = timezone.now()
    placement.published_by = user.get_username()
    placement.save(update_fields=["published_at", "published_by"])
    placed = published_people(placement)
    if placement.is_pairs:
        sentence = ngettext(
            "Published: %(count)s student has a roommate.",
            "Published: %(count)s students have a roommate.",
            placed,
        )
    else:
        sentence = ngettext(
            "Published: %(count)s student has a bed.",
            "Published: %(count)s students have a bed.",
            placed,
        )
    event_record(
        user=user,
        placement=placement,
        kind=ActKind.PUBLISHED,
        verb="published",
        sentence=sentence % {"count": f"{placed:,}"},
        people=placed,
    )
    report_published(placement, placed=placed)
    return placement


def _check_pairs(placement: Placement) -> None:
    """Raise HousingError while pairs are computed, or if a pair may not be a pair any more."""
    if placement.is_running:
        raise HousingError(_("Pairs are being computed right now. Publish when that is done."))
    forbidden = forbidden_numbers(placement)
    together = placement.pairs.exclude(state__in=APART).values_list("first_number", "second_number")
    wrong = [pair for pair in together if frozenset(pair) in forbidden]
    if wrong:
        raise HousingError(
            ngettext(
                "%(count)s pair is never to be paired by now, such as S-%(first)s + S-%(second)s. "
                "Compute the pairs again first.",
                "%(count)s pairs are never to be paired by now, such as S-%(first)s + "
                "S-%(second)s. Compute the pairs again first.",
                len(wrong),
            )
            % {"count": f"{len(wrong):,}", "first": wrong[0][0], "second": wrong[0][1]}
        )


@transaction.atomic
def placement_unpublish(*, user: User, placement: Placement, people: int) -> None:
    """Withdraw a publication; the rooms stay as they are, as a draft.

    Parameters
    ----------
    people : number of published beds in the question that was confirmed.

    Raises
    ------
    PlacesChangedError
        If the number of students with a published bed differs from it.
    """
    placement = lock_placement(placement)
    if not placement.is_published:
        raise HousingError(_("%(placement)s is not published.") % {"placement": placement.name})
    placed = published_people(placement)
    if people != placed:
        raise PlacesChangedError(
            ngettext(
                "%(count)s student has a published bed in %(placement)s. Nothing was "
                "withdrawn; confirm that number.",
                "%(count)s students have a published bed in %(placement)s. Nothing was "
                "withdrawn; confirm that number.",
                placed,
            )
            % {"count": f"{placed:,}", "placement": placement.name}
        )
    _withdraw(user, placement, "")


def published_people(placement: Placement) -> int:
    """Return how many students have a bed in a placement."""
    return placement.places.with_bed().count()


def _withdraw(user: User, placement: Placement, why: str) -> None:
    placement.published_at, placement.published_by = None, ""
    placement.save(update_fields=["published_at", "published_by"])
    offers_withdraw(placement.waiting_offers.all(), _("The publication was withdrawn."))
    placed = published_people(placement)
    sentence = ngettext(
        "Publication withdrawn: %(count)s bed was published.",
        "Publication withdrawn: %(count)s beds were published.",
        placed,
    ) % {"count": f"{placed:,}"}
    event_record(
        user=user,
        placement=placement,
        kind=ActKind.UNPUBLISHED,
        verb="withdrew publication",
        sentence=f"{sentence} {why}".strip(),
        people=placed,
    )
