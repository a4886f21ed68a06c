"""Starting checks, storing their results, and storing rosters' shapes."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files.quota import with_fresh_count
from webapp.housing.errors import HousingError
from webapp.housing.exports import DATES, MAX_HEADING, checked_columns, usual_heading
from webapp.housing.models import Placement
from webapp.housing.services.locking import lock_placement
from webapp.jobs.services import job_enqueue
from webapp.reports.models import PlacementCheck, RosterShape

MOST_SHAPES = 30  # of one organisation
_BYTES_A_STUDENT = 400


@with_fresh_count
@transaction.atomic
def check_start(*, user: User, placement: Placement) -> PlacementCheck:
    """Queue the check of a placement's current rooms.

    Raises HousingError for a placement without rooms, or while one is running.
    """
    placement = lock_placement(placement)
    if not placement.is_computed:
        raise HousingError(_("%(placement)s has no rooms yet.") % {"placement": placement.name})
    check, _rest = (
        PlacementCheck.objects.select_for_update(of=("self",))
        .select_related("job")
        .get_or_create(placement=placement)
    )
    if check.job is not None and check.job.is_active:
        raise HousingError(_("It is being checked right now."))
    check.job = job_enqueue(
        user=user,
        kind="reports.check",
        parameters={"placement": str(placement.pk), "version": placement.version},
        title=placement.name,
        stores=_BYTES_A_STUDENT * placement.cohort.n_students,
    )
    check.save(update_fields=["job"])
    return check


def check_store(*, placement_id: UUID, version: int, figures: dict[str, Any]) -> None:
    """Store the figures of a check; call it in the transaction that ends the job."""
    updated = PlacementCheck.objects.filter(placement=placement_id).update(
        figures=figures, version=version, checked_at=timezone.now()
    )
    if not updated:
        raise HousingError(_("The placement was removed meanwhile."))


def shape_save(
    *,
    user: User,
    name: str,
    columns: Sequence[tuple[str, str]],
    is_exact: bool,
    dates: str = "iso",
) -> RosterShape:
    """Store a roster's columns under a name; an existing name is overwritten.

    Parameters
    ----------
    columns : sequence of (key of the column, heading or "" for the usual one), in order.
    dates : key of :data:`webapp.housing.exports.DATES`.

    Raises
    ------
    HousingError
        One sentence: no name, no column, an unknown column, a repeated heading, too many.
    """
    name = " ".join(name.split())[:80]
    if not name:
        raise HousingError(_("The roster needs a name."), "name")
    checked_columns([key for key, _ in columns])
    if dates not in DATES:
        raise HousingError(_("Choose how the roster writes dates."), "dates")
    kept = [
        [key, " ".join(words.split())[:MAX_HEADING] or usual_heading(key)[:MAX_HEADING]]
        for key, words in columns
    ]
    headings = [heading.casefold() for _, heading in kept]
    if len(set(headings)) < len(headings):
        raise HousingError(_("Two columns have the same heading."))
    values: dict[str, Any] = {"columns": kept, "is_exact": is_exact, "dates": dates}
    values["updated_at"] = timezone.now()
    try:
        with transaction.atomic():
            shapes = RosterShape.objects.filter(organisation=user.own_organisation)
            if shapes.exclude(name=name).count() >= MOST_SHAPES:
                raise HousingError(
                    _("An organisation keeps at most %(most_shapes)s rosters.")
                    % {"most_shapes": MOST_SHAPES}
                )
            shape, _rest = RosterShape.objects.update_or_create(
                organisation=user.own_organisation,
                name=name,
                defaults=values,
                create_defaults={**values, "created_by": user},
            )
            audit(user, "kept a roster", shape, columns=[key for key, _ in kept])
    except IntegrityError as error:
        raise HousingError(_("Somebody kept a roster of this name a moment ago.")) from error
    return shape


@transaction.atomic
def shape_remove(*, user: User, shape: RosterShape) -> None:
    """Delete a roster's columns; downloaded files are not affected."""
    audit(user, "removed a roster", shape)
    shape.delete()
