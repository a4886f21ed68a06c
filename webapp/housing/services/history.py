"""Writing the history of a placement: one entry for each act."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.models import (
    ActKind,
    OfferState,
    Placement,
    PlacementEvent,
    WaitingOffer,
)
from webapp.housing.pairs.records import follow, note_counts
from webapp.housing.services.seats import Row
from webapp.housing.webhook_reports import report_moved

NAMED = 50  # students named by an audit line


def event_record(
    *,
    user: User | None,
    placement: Placement,
    kind: ActKind,
    verb: str,
    sentence: str,
    before: Sequence[Row] = (),
    after: Sequence[Row] = (),
    rooms: Sequence[Sequence[Any]] = (),
    details: Mapping[str, Any] | None = None,
    undoes: PlacementEvent | None = None,
    is_by_hand: bool = True,
    known_pairs: Sequence[Mapping[str, Any]] = (),
    **facts: Any,
) -> PlacementEvent:
    """Record an act on a locked placement: history, count of acts, webhook, audit line.

    Parameters
    ----------
    verb : str, verb of the audit line, in the past tense.
    before, after : rows of the students concerned.
    rooms : [[room key, side before, side after], ...] of rooms that were accepted or held back.
    is_by_hand : whether moves make the certificate out of date; an act that brings a
        certificate, or reverses moves, sets the count of changes itself.
    known_pairs : rows of pairs whose figures a run computed, in a placement of pairs.
    facts : other facts of the audit line, beside the students.
    """
    details = dict(details or {})
    if list(before) != list(after) or kind == ActKind.VERSION:
        placement.count_people()
    if placement.is_pairs:
        _follow_with_pairs(user, placement, kind, before, after, rooms, details, known_pairs)
    placement.version += 1
    placement.changes += int(is_by_hand and unsettles(before, after, details))
    placement.updated_at = timezone.now()
    counts = ("n_people", "n_placed", "n_pairs", "n_open")
    placement.save(update_fields=["version", "changes", "updated_at", *counts])
    event = PlacementEvent.objects.create(
        placement=placement,
        version=placement.version,
        kind=kind,
        user=user,
        sentence=sentence[:300],
        before=list(before),
        after=list(after),
        rooms=list(rooms),
        details=details,
        undoes=undoes,
    )
    report_moved(placement, before, after)
    offers_end(placement, before, after)
    if after:
        facts["students"] = [f"S-{row[0]}" for row in after][:NAMED]
    audit(user, verb, placement, organisation=placement.organisation, what=sentence[:300], **facts)
    return event


def offers_end(placement: Placement, before: Sequence[Row], after: Sequence[Row]) -> None:
    """Withdraw the open offers to students who got another bed by an act, or withdrew.

    Only a published placement has open offers.
    """
    if not placement.is_published:
        return
    old = {row[0]: row[1] for row in before}
    for numbers, why in (
        (
            [row[0] for row in after if row[1] is not None and row[1] != old.get(row[0])],
            gettext("The student got a bed otherwise."),
        ),
        ([row[0] for row in after if row[4]], gettext("The student withdrew.")),
    ):
        offers_withdraw(placement.waiting_offers.filter(student__number__in=numbers), why)


def offers_withdraw(offers: QuerySet[WaitingOffer], why: str) -> None:
    """Withdraw the open ones of these offers; their beds are free."""
    offers.filter(state=OfferState.OPEN).update(
        state=OfferState.WITHDRAWN, answered_at=timezone.now(), why=why
    )


def _follow_with_pairs(
    user: User | None,
    placement: Placement,
    kind: ActKind,
    before: Sequence[Row],
    after: Sequence[Row],
    rooms: Sequence[Sequence[Any]],
    details: dict[str, Any],
    known_pairs: Sequence[Mapping[str, Any]],
) -> None:
    """Bring the rows of pairs up to date, unless the act wrote them itself, and their counts."""
    if "pairs" not in details:
        rows = (*before, *after)
        is_whole = kind == ActKind.VERSION
        details["pairs"] = follow(
            user,
            placement,
            None if is_whole else {row[0] for row in rows},
            {row[1] for row in rows if row[1] is not None} | {key for key, _, _ in rooms},
            known_pairs,
        )
        if is_whole and "state" not in details:
            del details["pairs"]  # the first version replaced nothing that undo could put back
    note_counts(placement)


def unsettles(before: Sequence[Row], after: Sequence[Row], details: Mapping[str, Any]) -> bool:
    """Return True if an act made the certificate out of date."""
    return bool(details.get("unsettles", is_move(before, after)))


def is_move(before: Sequence[Row], after: Sequence[Row]) -> bool:
    """Return True if an act moved any student, which makes the certificate out of date."""
    return {row[0]: row[1] for row in before} != {row[0]: row[1] for row in after}


def state_of(placement: Placement) -> dict[str, Any]:
    """Return the state that says which version is in force, as the history stores it."""
    return {
        "version": placement.current_id,
        "rules": placement.rules,
        "figures": placement.figures,
        "best_at": placement.best_at.isoformat() if placement.best_at else None,
        "changes": placement.changes,
        "clashes": placement.clashes,
        "arrays": str(placement.arrays) if placement.arrays else None,
    }


def state_put(placement: Placement, state: Mapping[str, Any]) -> None:
    """Restore the state that :func:`state_of` returned."""
    known = placement.versions.filter(pk=state["version"] or 0)
    placement.current = known.only("pk").first()
    placement.rules, placement.figures = state["rules"], state["figures"]
    placement.best_at = parse_datetime(state["best_at"]) if state["best_at"] else None
    placement.changes, placement.clashes = state["changes"], state["clashes"]
    if "arrays" in state:  # acts of earlier versions did not store it
        placement.arrays = UUID(state["arrays"]) if state["arrays"] else None
    placement.save(
        update_fields=["current", "rules", "figures", "best_at", "changes", "clashes", "arrays"]
    )
