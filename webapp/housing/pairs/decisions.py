"""Decisions about pairs. Each names the version on its page; the second of two is refused."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from webapp.accounts.models import User
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import (
    APART,
    ActKind,
    PairState,
    PlacedPair,
    Placement,
    PlacementEvent,
    RoomState,
)
from webapp.housing.pairs.records import COMPUTED_AGAIN, change_of, changed_sentence, pair_row
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.reviews import put_sides, sides
from webapp.housing.services.seats import Row, Seat, seats_put
from webapp.matching.models import ForbiddenPair
from webapp.translation.lazy import gettext_lazy


class Decision(StrEnum):
    """A decision about a pair."""

    ACCEPT = "accept"
    REJECT = "reject"
    LOCK = "lock"
    NEVER = "never"
    REOPEN = "reopen"


_STATE_AFTER = {
    Decision.ACCEPT: PairState.ACCEPTED,
    Decision.REJECT: PairState.REJECTED,
    Decision.LOCK: PairState.LOCKED,
    Decision.NEVER: PairState.NEVER,
    Decision.REOPEN: PairState.OPEN,
}
# The history of a decision about one pair.
_OF_PAIR = {
    Decision.ACCEPT: gettext_lazy("%(pair)s accepted."),
    Decision.REJECT: gettext_lazy(
        "%(pair)s rejected; they are paired again when you compute again."
    ),
    Decision.LOCK: gettext_lazy("%(pair)s locked together."),
    Decision.NEVER: gettext_lazy("%(pair)s marked never to be paired."),
    Decision.REOPEN: gettext_lazy("%(pair)s open again."),
}
# The history of a decision about several pairs.
_OF_PAIRS: dict[Decision, Any] = {
    Decision.ACCEPT: ngettext_lazy(
        "%(count)s pair accepted.", "%(count)s pairs accepted.", "number"
    ),
    Decision.REJECT: ngettext_lazy(
        "%(count)s pair rejected; they are paired again when you compute again.",
        "%(count)s pairs rejected; they are paired again when you compute again.",
        "number",
    ),
    Decision.LOCK: ngettext_lazy(
        "%(count)s pair locked together.", "%(count)s pairs locked together.", "number"
    ),
    Decision.NEVER: ngettext_lazy(
        "%(count)s pair marked never to be paired.",
        "%(count)s pairs marked never to be paired.",
        "number",
    ),
    Decision.REOPEN: ngettext_lazy(
        "%(count)s pair open again.", "%(count)s pairs open again.", "number"
    ),
}
_AUDIT_VERBS = {
    Decision.ACCEPT: "accepted",
    Decision.REJECT: "rejected",
    Decision.LOCK: "locked",
    Decision.NEVER: "never paired",
    Decision.REOPEN: "reopened",
}
# Decisions after which the computed pairing is no longer the best under the rules.
_UNSETTLING = {PairState.REJECTED, PairState.NEVER, PairState.SWAPPED}
# States with a rule: rejected in the placement, never for the whole cohort.
_FORBIDDING = {PairState.REJECTED, PairState.NEVER}


_KINDS = {
    Decision.ACCEPT: ActKind.REVIEWED,
    Decision.REJECT: ActKind.PARTED,
    Decision.LOCK: ActKind.LOCKED,
    Decision.NEVER: ActKind.PARTED,
    Decision.REOPEN: ActKind.REVIEWED,
}


def lock_pairs(placement: Placement) -> Placement:
    """Return the row of a placement in pairs, locked until the transaction ends.

    Raises HousingError while its pairs are being computed, as a decision taken now would be lost,
    and for a placement in rooms.
    """
    locked = lock_placement(placement)
    if not locked.is_pairs:
        raise HousingError(
            _("%(locked)s places students in rooms, not in pairs alone.") % {"locked": locked.name}
        )
    if locked.is_running:
        raise HousingError(_("Pairs are being computed right now. Decide when that is done."))
    return locked


def check_draft(placement: Placement) -> None:
    """Raise HousingError if students read these pairs, who are not parted by one click."""
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Withdraw the publication first; its pairs stay.")
            % {"placement": placement.name}
        )


@transaction.atomic
def pairs_decide(
    *, user: User, placement: Placement, decision: Decision, versions: dict[int, int]
) -> PlacementEvent:
    """Decide about one or more pairs, all or none.

    Parameters
    ----------
    versions : dict
        {key of the pair: version on the user's page}.

    Raises
    ------
    PlacesChangedError
        If somebody has changed one of the pairs; the message names the pair and the person.
    HousingError
        If a pair is locked and the decision is not about the lock, if one to accept or lock is
            forbidden, if a job is running, or if a published pair would be parted.
    """
    placement = lock_pairs(placement)
    pairs = list(placement.pairs.filter(pk__in=versions))
    if len(pairs) != len(versions) or not pairs:
        raise PlacesChangedError(COMPUTED_AGAIN)
    state = _STATE_AFTER[decision]
    if state in APART or any(pair.state in APART for pair in pairs):
        check_draft(placement)
    for pair in pairs:
        _check_may_change(pair, state, bulk=len(pairs) > 1)
    before = [pair_row(pair) for pair in pairs]
    for pair in pairs:
        _set_state(user, pair, state, versions[pair.pk])
    forbidden = _sync_forbidden(user, placement, pairs, before, state)
    return pairs_record(
        user=user,
        placement=placement,
        kind=_KINDS[decision],
        sentence=_sentence(pairs, decision),
        before=before,
        pairs=pairs,
        rules={"forbidden": forbidden},
        verb=_AUDIT_VERBS[decision],
        unsettles=state in _UNSETTLING,
    )


def _check_may_change(pair: PlacedPair, state: PairState, *, bulk: bool) -> None:
    if pair.state == PairState.LOCKED and state not in (PairState.OPEN, PairState.LOCKED):
        raise HousingError(_("%(pair)s is locked. Release the lock first.") % {"pair": pair.label})
    if pair.state == PairState.LOCKED and bulk and state == PairState.OPEN:
        raise HousingError(
            _("%(pair)s is locked. Release locks one by one.") % {"pair": pair.label}
        )
    if state in (PairState.ACCEPTED, PairState.LOCKED) and pair.state != PairState.NEVER:
        never = ForbiddenPair.objects.filter(
            placement=None, first=pair.first_id, second=pair.second_id
        )
        if never.exists():
            raise HousingError(
                _("%(pair)s are never to be paired. Allow them first.") % {"pair": pair.label}
            )
    if state == PairState.REJECTED and pair.state == PairState.NEVER:
        # A rejection holds for this placement only: it would lift the rule for the whole cohort.
        raise HousingError(
            _("%(pair)s are never to be paired, so not in this placement either.")
            % {"pair": pair.label}
        )


def _set_state(user: User, pair: PlacedPair, state: PairState, version: int) -> None:
    is_open = state == PairState.OPEN
    written = {
        "state": state.value,
        "version": version + 1,
        "decided_by": "" if is_open else user.get_username(),
        "decided_at": None if is_open else timezone.now(),
    }
    if not PlacedPair.objects.filter(pk=pair.pk, version=version).update(**written):
        raise PlacesChangedError(changed_sentence(pair))
    for name, value in written.items():
        setattr(pair, name, value)


def _sync_forbidden(
    user: User,
    placement: Placement,
    pairs: Sequence[PlacedPair],
    before: Sequence[dict[str, Any]],
    state: PairState,
) -> dict[str, list[list[int]]]:
    """Make rules agree with the states; return the removed and added rules, for undo.

    Only the rule of a pair's former state is removed: a permanent rule may come from another
    placement of the cohort, and holds until somebody allows the pair.
    """
    removed, added = [], []
    for pair, row in zip(pairs, before, strict=True):
        key = [pair.first_id, pair.second_id]
        if row["state"] != state and _remove_rule_of(row["state"], placement, pair):
            removed.append([row["state"] == PairState.NEVER, *key])
        if state in _FORBIDDING:
            _rest, is_new = ForbiddenPair.objects.get_or_create(
                cohort_id=placement.cohort_id,
                placement=placement if state == PairState.REJECTED else None,
                first_id=pair.first_id,
                second_id=pair.second_id,
                defaults={"created_by": user.get_username()},
            )
            if is_new:
                added.append([state == PairState.NEVER, *key])
    return {"removed": removed, "added": added}


def _remove_rule_of(state: str, placement: Placement, pair: PlacedPair) -> bool:
    """Remove the rule of a former state; return True if there was one."""
    if state not in _FORBIDDING:
        return False
    rule = ForbiddenPair.objects.filter(
        placement=placement if state == PairState.REJECTED else None,
        first=pair.first_id,
        second=pair.second_id,
    )
    return rule.delete()[0] > 0


def _sentence(pairs: Sequence[PlacedPair], decision: Decision) -> str:
    if len(pairs) == 1:
        return _OF_PAIR[decision] % {"pair": pairs[0].label}
    n = len(pairs)
    return str(_OF_PAIRS[decision] % {"number": n, "count": f"{n:,}"})


def pairs_record(
    *,
    user: User,
    placement: Placement,
    kind: ActKind,
    sentence: str,
    before: list[dict[str, Any]],
    pairs: Sequence[PlacedPair],
    rules: dict[str, dict[str, list[Any]]],
    verb: str,
    unsettles: bool,
    **facts: Any,
) -> PlacementEvent:
    """Put the students of changed pairs into their rooms, or out of them, and record the act.

    ``before`` are the rows of the pairs as they were. Raises HousingError if a rule would break.
    """
    seats_before, seats_after = _share_rooms(placement, before, pairs)
    rooms = _accept_rooms(placement, pairs)
    shown = [pair.label for pair in pairs[:50]]
    return event_record(
        user=user,
        placement=placement,
        kind=kind,
        verb=verb,
        sentence=sentence,
        before=seats_before,
        after=seats_after,
        rooms=rooms,
        details={
            "pairs": change_of(before, pairs),
            "rules": {name: change for name, change in rules.items() if any(change.values())},
            "unsettles": unsettles,
        },
        pairs=shown,
        count=len(pairs),
        **facts,
    )


def _share_rooms(
    placement: Placement, before: Sequence[dict[str, Any]], pairs: Sequence[PlacedPair]
) -> tuple[list[Row], list[Row]]:
    """Seat the students of some pairs as their states say; return their rows before and after."""
    old = [(row["first_number"], row["second_number"], row["state"]) for row in before]
    new = [(pair.first_number, pair.second_number, pair.state) for pair in pairs]
    seats = {
        number: Seat(
            pair.room_id if pair.shares_a_room else None,
            is_locked=pair.state == PairState.LOCKED,
        )
        for pair in pairs
        for number in (pair.first_number, pair.second_number)
    }
    if not seats or old == new:
        return [], []
    seating = seats_put(placement, seats)
    return seating.before, seating.after


def _accept_rooms(placement: Placement, pairs: Sequence[PlacedPair]) -> list[list[Any]]:
    """Mark rooms of accepted pairs as accepted, others as not; return the changes."""
    now = sides(placement, [pair.room_id for pair in pairs])
    wanted = {
        pair.room_id: (
            RoomState(now[pair.room_id][0]).value,
            [pair.first_number, pair.second_number] if pair.state == PairState.ACCEPTED else None,
        )
        for pair in pairs
    }
    changed = {key: side for key, side in wanted.items() if side != now[key]}
    if changed:
        put_sides(placement, changed)
    return [[key, list(now[key]), list(side)] for key, side in changed.items()]
