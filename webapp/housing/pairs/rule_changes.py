"""Changes to the rules of pairs: locks, forbidden pairs, singles and columns to be equal."""

from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    APART,
    HELD_STATES,
    ActKind,
    PairLock,
    PairState,
    PlacedPair,
    Placement,
    PlacementEvent,
)
from webapp.housing.pairs.decisions import check_draft, lock_pairs, pairs_record
from webapp.housing.pairs.records import pair_row
from webapp.housing.pairs.rule_record import Change, record_rules, write_rules
from webapp.matching.models import ForbiddenPair


@transaction.atomic
def rule_change(
    *,
    user: User,
    placement: Placement,
    action: str,
    first: int = 0,
    second: int = 0,
    column: str = "",
) -> PlacementEvent:
    """Change one rule; return the event, with its sentence, that undo can take back.

    Parameters
    ----------
    action : str
        lock, release, keep_lock, never, unreject, allow, single, unsingle, relax or require.
    first, second : int
        Numbers of students as on screen (1001 for S-1001), if the action is about students.
    column : str
        Column for relax and require.

    Raises
    ------
    HousingError
        One sentence; nothing was changed.
    """
    if action not in ACTIONS:
        raise HousingError(_("There is no such rule."))
    placement = lock_pairs(placement)
    rules, pairs = record_rules(placement), _pairs_of(placement, first, second)
    if action in _OF_COLUMNS:
        sentence = _OF_COLUMNS[action](placement, column)
    elif action in _OF_STUDENTS:
        sentence = _OF_STUDENTS[action](placement, _student(placement, first))
    else:
        if first == second:
            raise HousingError(
                _("S-%(first)s cannot be paired with themselves.") % {"first": first}
            )
        low, high = sorted((first, second)) if action != "keep_lock" else (first, second)
        pair = (_student(placement, low), _student(placement, high))
        sentence = _OF_PAIRS[action](user, placement, *pair)
    return _record(user, placement, sentence, pairs, rules.changes_to(record_rules(placement)))


def _pairs_of(placement: Placement, first: int, second: int) -> dict[int, dict[str, Any]]:
    """Return the rows of the pairs that a rule about these two students may change."""
    numbers = (first, second)
    pairs = placement.pairs.filter(Q(first__number__in=numbers) | Q(second__number__in=numbers))
    return {pair.pk: pair_row(pair) for pair in pairs}


def _record(
    user: User,
    placement: Placement,
    sentence: str,
    pairs: dict[int, dict[str, Any]],
    changes: dict[str, Change],
) -> PlacementEvent:
    """Write the log that undo reads, with the pairs that the rule changed, and the audit line.

    Raises HousingError if neither rules nor pairs changed.
    """
    now = {pair.pk: pair for pair in placement.pairs.filter(pk__in=pairs)}
    changed = [row for key, row in pairs.items() if now[key].version != row["version"]]
    is_new = any(change["removed"] or change["added"] for change in changes.values())
    if not changed and not is_new:
        raise HousingError(_("That is so already. Nothing was changed."))
    if any(row["state"] in APART or now[row["pk"]].state in APART for row in changed):
        check_draft(placement)
    # Pairs that are now locked are as good as before.
    unsettles = is_new or any(now[row["pk"]].state != PairState.LOCKED for row in changed)
    return pairs_record(
        user=user,
        placement=placement,
        kind=ActKind.RULES,
        sentence=sentence[:300],
        before=changed,
        pairs=[now[row["pk"]] for row in changed],
        rules=changes,
        verb="changed a rule",
        unsettles=unsettles,
        rule=sentence,
    )


def _student(placement: Placement, number: int) -> Student:
    student = Student.objects.filter(cohort_id=placement.cohort_id, number=number).first()
    if student is None:
        raise HousingError(
            _("S-%(number)s is not a student of %(cohort)s.")
            % {"number": number, "cohort": placement.cohort.name}
        )
    return student


def _lock(user: User, placement: Placement, first: Student, second: Student) -> str:
    """Lock two students: at once if they are a pair, otherwise when pairs are computed again.

    A rejection in this placement is lifted, as by a decision; "never" stays, as a conflict.
    """
    was_rejected = _let_pair(placement, first, second, (PairState.REJECTED,))
    together = placement.pairs.filter(first=first, second=second).exclude(state=PairState.NEVER)
    if together.exists():
        _decide(user, together, PairState.LOCKED)
    else:
        PairLock.objects.get_or_create(
            placement=placement,
            first=first,
            second=second,
            defaults={"created_by": user.get_username()},
        )
    if was_rejected:
        words = _("%(first)s + %(second)s locked together; they are no longer rejected.")
    else:
        words = _("%(first)s + %(second)s locked together.")
    return words % {"first": first, "second": second}


def _decide(user: User, pairs: QuerySet[PlacedPair], state: PairState) -> None:
    """Set the state of the pairs that are not in it already."""
    pairs.exclude(state=state).update(
        state=state,
        version=F("version") + 1,
        decided_by=user.get_username(),
        decided_at=timezone.now(),
    )


def _release(user: User, placement: Placement, first: Student, second: Student) -> str:
    placement.locks.filter(first=first, second=second).delete()
    _open(placement.pairs.filter(first=first, second=second, state__in=HELD_STATES))
    return _("%(first)s + %(second)s released.") % {"first": first, "second": second}


def _keep_lock(user: User, placement: Placement, student: Student, partner: Student) -> str:
    """Release every lock and held pair of the student except those with the partner."""
    mine = Q(first=student) | Q(second=student)
    kept = Q(first=partner) | Q(second=partner)
    placement.locks.filter(mine).exclude(kept).delete()
    _open(placement.pairs.filter(mine, state__in=HELD_STATES).exclude(kept))
    return _("%(student)s stays with %(partner)s.") % {"student": student, "partner": partner}


def _never(user: User, placement: Placement, first: Student, second: Student) -> str:
    if placement.pairs.filter(first=first, second=second, state=PairState.LOCKED).exists():
        raise HousingError(
            _("%(first)s + %(second)s is locked. Release the lock first.")
            % {"first": first, "second": second}
        )
    _let_pair(placement, first, second, (PairState.REJECTED,))  # the stronger rule alone
    _decide(user, placement.pairs.filter(first=first, second=second), PairState.NEVER)
    ForbiddenPair.objects.get_or_create(
        cohort_id=placement.cohort_id,
        placement=None,
        first=first,
        second=second,
        defaults={"created_by": user.get_username()},
    )
    return _("%(first)s + %(second)s are never to be paired.") % {"first": first, "second": second}


def _unreject(user: User, placement: Placement, first: Student, second: Student) -> str:
    """Undo a rejection; "never", which holds for every placement of the cohort, stays."""
    _let_pair(placement, first, second, (PairState.REJECTED,))
    never = ForbiddenPair.objects.filter(placement=None, first=first, second=second)
    if never.exists():
        words = _("%(first)s + %(second)s are no longer rejected, but never to be paired.")
    else:
        words = _("%(first)s + %(second)s are no longer rejected.")
    return words % {"first": first, "second": second}


def _allow(user: User, placement: Placement, first: Student, second: Student) -> str:
    _let_pair(placement, first, second, (PairState.NEVER, PairState.REJECTED))
    return _("%(first)s + %(second)s may be paired again.") % {"first": first, "second": second}


def _let_pair(
    placement: Placement, first: Student, second: Student, states: tuple[PairState, ...]
) -> bool:
    """Remove the rules of these states, and open the pair; return True if there were any."""
    whose = Q(placement=placement)
    if PairState.NEVER in states:
        whose |= Q(placement=None)
    forbidden = ForbiddenPair.objects.filter(
        whose, cohort_id=placement.cohort_id, first=first, second=second
    )
    n_removed, _rest = forbidden.delete()
    pairs = placement.pairs.filter(first=first, second=second, state__in=states)
    if ForbiddenPair.objects.filter(placement=None, first=first, second=second).exists():
        pairs.update(state=PairState.NEVER, version=F("version") + 1)  # they stay apart
    else:
        _open(pairs)
    return n_removed > 0


def _open(pairs: QuerySet[PlacedPair]) -> None:
    pairs.update(state=PairState.OPEN, version=F("version") + 1, decided_by="", decided_at=None)


def _single(placement: Placement, student: Student) -> str:
    if student.number not in placement.singles:
        write_rules(placement, singles=sorted([*placement.singles, student.number]))
    return _("%(student)s stays single.") % {"student": student}


def _unsingle(placement: Placement, student: Student) -> str:
    rest = [number for number in placement.singles if number != student.number]
    write_rules(placement, singles=rest)
    return _("%(student)s is to be paired.") % {"student": student}


def _check_column(placement: Placement, column: str) -> None:
    if column not in placement.cohort.constraints:
        raise HousingError(
            _("%(column)s is not a constraint column of %(cohort)s.")
            % {"column": column, "cohort": placement.cohort.name}
        )


def _relax(placement: Placement, column: str) -> str:
    _check_column(placement, column)
    rest = [name for name in placement.same if name != column]
    write_rules(placement, same=rest)
    return _("Pairs need not have the same %(column)s.") % {"column": column}


def _require(placement: Placement, column: str) -> str:
    _check_column(placement, column)
    if column not in placement.same:
        write_rules(placement, same=[*placement.same, column])
    return _("Pairs must have the same %(column)s.") % {"column": column}


_OF_PAIRS = {
    "lock": _lock,
    "release": _release,
    "keep_lock": _keep_lock,
    "never": _never,
    "unreject": _unreject,
    "allow": _allow,
}
_OF_STUDENTS = {"single": _single, "unsingle": _unsingle}
_OF_COLUMNS = {"relax": _relax, "require": _require}

ACTIONS = (*_OF_PAIRS, *_OF_STUDENTS, *_OF_COLUMNS)
