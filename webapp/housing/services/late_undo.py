"""Undo of late arrivals: they leave the waiting lists, unless something was decided about them."""

from collections.abc import Mapping

from django.db.models import Q
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.housing.models import (
    ActKind,
    Placement,
    PlacementEvent,
    PlacementVersion,
    Preference,
    ProposedChange,
    RoommateRequest,
)
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import placements_lock
from webapp.housing.services.seats import row_of
from webapp.housing.services.undo import mark_undone
from webapp.jobs.models import ACTIVE_STATES


def latecomers_leave(*, user: User, cohort: Cohort, arrivals: LateArrivals) -> None:
    """Remove late arrivals from the placements of their cohort; each history records it."""
    span = (arrivals.first_number, arrivals.last_number)
    for placement in placements_lock(cohort):
        places = placement.places.filter(number__range=span)
        rows = [row_of(place) for place in places]
        event = placement.events.filter(
            kind=ActKind.ARRIVED, details__arrival=arrivals.pk, undone_at=None
        ).first()
        if not rows or event is None:
            continue
        places.delete()
        mark_undone(placement, event)
        event_record(
            user=user,
            placement=placement,
            kind=ActKind.UNDONE,
            verb="undid",
            sentence=_("Undone: %(sentence)s") % {"sentence": event.sentence},
            before=rows,
            details={"arrival": arrivals.pk},
            undoes=event,
            is_by_hand=False,
        )


def decided_about(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return a sentence for each late arrival about whom housing stored a decision since."""
    found: dict[int, str] = {}
    for placement in Placement.objects.filter(cohort=cohort):
        found = {**_in_placement(placement, late), **found}
    return {**_asked_for(cohort, late), **found}


def _in_placement(placement: Placement, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    if placement.is_running:
        words = _("%(placement)s is being computed now. Wait for it, or cancel it.") % {
            "placement": placement
        }
        return dict.fromkeys(late, words)
    known = set(
        PlacementEvent.objects.filter(placement=placement, kind=ActKind.ARRIVED).values_list(
            "details__arrival", flat=True
        )
    )
    published = placement.published_at
    offers = placement.waiting_offers.filter(student__number__in=late)
    offered = set(offers.values_list("student__number", flat=True))
    found: dict[int, str] = {}
    for place in placement.places.filter(number__in=late).select_related("room"):
        came = late[place.number]
        if place.room is not None:
            found[place.number] = _("%(place)s has a bed in %(room)s by now (%(placement)s).") % {
                "place": place.label,
                "room": place.room,
                "placement": placement,
            }
        elif place.has_left:
            found[place.number] = _("%(place)s was withdrawn in %(placement)s since.") % {
                "place": place.label,
                "placement": placement,
            }
        elif place.number in offered:
            found[place.number] = _("%(place)s was offered a bed in %(placement)s since.") % {
                "place": place.label,
                "placement": placement,
            }
        elif place.turn or place.is_locked:
            found[place.number] = _("%(place)s was moved on the waiting list of %(placement)s.") % {
                "place": place.label,
                "placement": placement,
            }
        elif came.pk not in known:
            found[place.number] = _("%(placement)s was computed with %(place)s since.") % {
                "placement": placement,
                "place": place.label,
            }
        elif published is not None and published > came.created_at:
            found[place.number] = _(
                "%(placement)s was published since, with %(place)s waiting."
            ) % {"placement": placement, "place": place.label}
    return {**_in_versions(placement, late), **_in_changes(placement, late), **found}


def _in_versions(placement: Placement, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return late arrivals who have a room in a version that was stored since they came."""
    since = min(one.created_at for one in late.values())
    versions = PlacementVersion.objects.filter(placement=placement, created_at__gt=since)
    rows = list(versions.values_list("number", "rows"))
    if not rows:
        return {}
    keys = dict(placement.places.filter(number__in=late).values_list("student_id", "number"))
    return {
        keys[row[0]]: _("S-%(keys)s has a room in version %(version)s of %(placement)s.")
        % {"keys": keys[row[0]], "version": version, "placement": placement}
        for version, own in rows
        for row in own
        if row[0] in keys and row[1] is not None
    }


def _in_changes(placement: Placement, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return late arrivals who are part of an open draft of late changes."""
    found: dict[int, str] = {}
    drafts = ProposedChange.objects.filter(placement=placement).select_related("job", "curve_job")
    keys = None
    for draft in drafts:
        jobs = (draft.job, draft.curve_job)
        if any(job is not None and job.state in ACTIVE_STATES for job in jobs):
            words = _(
                "Late changes of %(placement)s are being computed now. Wait, or discard them."
            ) % {"placement": placement}
            return dict.fromkeys(late, words)
        numbers = {int(number) for number in (*draft.seats, *draft.chosen, *draft.pinned)}
        if draft.rows:
            if keys is None:
                keys = dict(placement.places.values_list("student_id", "number"))
            numbers |= {keys[row[0]] for row in draft.rows if row[0] in keys}
        for number in numbers & late.keys():
            found[number] = _("S-%(number)s is part of the open late changes of %(placement)s.") % {
                "number": number,
                "placement": placement,
            }
    return found


def _asked_for(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return late arrivals with requests or choices that did not come with them."""
    found: dict[int, str] = {}
    brought = {key for one in set(late.values()) for key in one.brought.get("requests", [])}
    concerned = Q(student__number__in=late) | Q(target__number__in=late)
    requests = RoommateRequest.objects.filter(concerned, cohort=cohort).values_list(
        "pk", "student__number", "target__number"
    )
    for key, asker, target in requests:
        if key in brought:
            continue
        if target in late:
            found[target] = _("S-%(asker)s asked for S-%(target)s since.") % {
                "asker": asker,
                "target": target,
            }
        if asker in late:
            found[asker] = _("S-%(asker)s has a roommate request since.") % {"asker": asker}
    choices = Preference.objects.filter(cohort=cohort, student__number__in=late)
    for number in choices.values_list("student__number", flat=True):
        found.setdefault(
            number, _("S-%(number)s has choices of halls or rooms since.") % {"number": number}
        )
    return found
