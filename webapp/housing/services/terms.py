"""Terms of an organisation, and the term that a placement is for; each act has its audit line."""

from datetime import date, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement, Term
from webapp.housing.models.term import MAX_TERM_CODE, MAX_TERM_NAME
from webapp.housing.services.checks import check_free_elsewhere
from webapp.housing.services.locking import lock_placement

MAX_TERMS = 200  # of one organisation
MAX_TERM_LENGTH = timedelta(days=731)


def term_save(
    *, user: User, term: Term | None, name: str, code: str, starts_on: date, ends_on: date
) -> Term:
    """Add a term, or change one.

    Raises HousingError for a blank or repeated name, days in the wrong order, too many terms, or
    days on which a published bed would be taken twice.
    """
    name, code = " ".join(name.split()), " ".join(code.split())
    if not name:
        raise HousingError("The term needs a name.", "name")
    if len(name) > MAX_TERM_NAME or len(code) > MAX_TERM_CODE:
        raise HousingError("The name or the code is too long. Shorten it.", "name")
    if ends_on <= starts_on:
        raise HousingError("The last day has to be after the first day.", "ends_on")
    if ends_on - starts_on > MAX_TERM_LENGTH:
        raise HousingError("A term lasts at most two years. Check the days.", "ends_on")
    own = Term.objects.filter(organisation=user.own_organisation)
    if term is None:
        if own.count() >= MAX_TERMS:
            raise HousingError(f"An organisation keeps at most {MAX_TERMS} terms. Remove one.")
        term = Term(organisation=user.own_organisation, created_by=user)
    if own.filter(name=name).exclude(pk=term.pk).exists():
        raise HousingError(f"There is a term called {name} already.", "name")
    term.name, term.code, term.starts_on, term.ends_on = name, code, starts_on, ends_on
    is_new = term.pk is None
    try:
        with transaction.atomic():
            term.save()
            for placement in [] if is_new else _published(term):
                check_free_elsewhere(lock_placement(placement))
            audit(
                user,
                "added a term" if is_new else "changed a term",
                term,
                starts_on=starts_on.isoformat(),
                ends_on=ends_on.isoformat(),
            )
    except IntegrityError as error:
        raise HousingError(f"There is a term called {name} already.", "name") from error
    return term


@transaction.atomic
def term_remove(*, user: User, term: Term) -> None:
    """Remove a term that no placement is for."""
    count = term.placements.count()
    if count:
        raise HousingError(
            f"{counted(count, 'placement is', 'placements are')} for {term.name}. Choose another "
            "term there first. Nothing was removed."
        )
    audit(user, "removed a term", term)
    term.delete()


def _published(term: Term) -> QuerySet[Placement]:
    """Return the published placements of a term, in the order in which they are locked."""
    return term.placements.filter(published_at__isnull=False).order_by("buildings", "pk")


@transaction.atomic
def placement_term_set(*, user: User, placement: Placement, term: Term | None) -> None:
    """Set the term that a placement is for, or none.

    Raises HousingError if a published bed would be taken twice on a day, or if another placement of
    the cohort is published for that term.
    """
    Cohort.objects.select_for_update().get(pk=placement.cohort_id)
    placement = lock_placement(placement)
    if term is not None and term.organisation_id != placement.organisation_id:
        raise HousingError("There is no such term.", "term")
    placement.term, placement.updated_at = term, timezone.now()
    if placement.is_published and (other := placement.replaced) is not None:
        raise HousingError(
            f"{other} is published for {term.name if term else 'no term'} already. Withdraw that "
            "publication first, or choose another term.",
            "term",
        )
    placement.save(update_fields=["term", "updated_at"])
    if placement.is_published:
        check_free_elsewhere(placement)
    audit(user, "set the term", placement, term=term.name if term else "")
