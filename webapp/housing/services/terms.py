"""Terms of an organisation, and the term that a placement is for; each act has its audit line."""

from datetime import date, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
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
        raise HousingError(_("The term needs a name."), "name")
    if len(name) > MAX_TERM_NAME or len(code) > MAX_TERM_CODE:
        raise HousingError(_("The name or the code is too long. Shorten it."), "name")
    if ends_on <= starts_on:
        raise HousingError(_("The last day has to be after the first day."), "ends_on")
    if ends_on - starts_on > MAX_TERM_LENGTH:
        raise HousingError(_("A term lasts at most two years. Check the days."), "ends_on")
    own = Term.objects.filter(organisation=user.own_organisation)
    if term is None:
        if own.count() >= MAX_TERMS:
            raise HousingError(
                _("An organisation keeps at most %(max_terms)s terms. Remove one.")
                % {"max_terms": MAX_TERMS}
            )
        term = Term(organisation=user.own_organisation, created_by=user)
    if own.filter(name=name).exclude(pk=term.pk).exists():
        raise HousingError(_("There is a term called %(name)s already.") % {"name": name}, "name")
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
        raise HousingError(
            _("There is a term called %(name)s already.") % {"name": name}, "name"
        ) from error
    return term


@transaction.atomic
def term_remove(*, user: User, term: Term) -> None:
    """Remove a term that no placement is for."""
    count = term.placements.count()
    if count:
        raise HousingError(
            ngettext(
                "%(count)s placement is for %(term)s. Choose another term there first. "
                "Nothing was removed.",
                "%(count)s placements are for %(term)s. Choose another term there first. "
                "Nothing was removed.",
                count,
            )
            % {"count": f"{count:,}", "term": term.name}
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
        raise HousingError(_("There is no such term."), "term")
    placement.term, placement.updated_at = term, timezone.now()
    if placement.is_published and (other := placement.replaced) is not None:
        raise HousingError(
            _(
                "%(other)s is published for %(term)s already. Withdraw that publication "
                "first, or choose another term."
            )
            % {"other": other, "term": term.name if term else _("no term")},
            "term",
        )
    placement.save(update_fields=["term", "updated_at"])
    if placement.is_published:
        check_free_elsewhere(placement)
    audit(user, "set the term", placement, term=term.name if term else "")
