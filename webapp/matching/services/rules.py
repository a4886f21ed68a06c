"""Changes to a proposal's rules: locks, forbidden pairs, singles and columns to be equal."""

from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Student
from webapp.matching.errors import DecisionError
from webapp.matching.models import (
    Decision,
    DecisionEvent,
    ForbiddenPair,
    LockRule,
    PairState,
    Proposal,
    ProposedPair,
)
from webapp.matching.rules import HELD_STATES
from webapp.matching.services.decisions import lock_proposal, note_changes, pair_row
from webapp.matching.services.rule_record import Change, record_rules


@transaction.atomic
def rule_change(
    *,
    user: User,
    proposal: Proposal,
    action: str,
    first: int = 0,
    second: int = 0,
    column: str = "",
) -> DecisionEvent:
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
    DecisionError
        One sentence; nothing was changed.
    """
    if action not in ACTIONS:
        raise DecisionError("There is no such rule.")
    proposal = lock_proposal(proposal)
    rules, pairs = record_rules(proposal), _pairs_of(proposal, first, second)
    if action in _OF_COLUMNS:
        sentence = _OF_COLUMNS[action](proposal, column)
    elif action in _OF_STUDENTS:
        sentence = _OF_STUDENTS[action](proposal, _student(proposal, first))
    else:
        if first == second:
            raise DecisionError(f"S-{first} cannot be paired with themselves.")
        low, high = sorted((first, second)) if action != "keep_lock" else (first, second)
        pair = (_student(proposal, low), _student(proposal, high))
        sentence = _OF_PAIRS[action](user, proposal, *pair)
    return _record(user, proposal, sentence, pairs, rules.changes_to(record_rules(proposal)))


def _pairs_of(proposal: Proposal, first: int, second: int) -> dict[int, dict[str, Any]]:
    """Return the rows of the proposed pairs that a rule about these two students may change."""
    numbers = (first, second)
    pairs = proposal.pairs.filter(Q(first__number__in=numbers) | Q(second__number__in=numbers))
    return {pair.pk: pair_row(pair) for pair in pairs}


def _record(
    user: User,
    proposal: Proposal,
    sentence: str,
    pairs: dict[int, dict[str, Any]],
    changes: dict[str, Change],
) -> DecisionEvent:
    """Write the log that undo reads, with the pairs that the rule changed, and the audit line.

    Raises DecisionError if neither rules nor pairs changed.
    """
    now = {pair.pk: pair for pair in proposal.pairs.filter(pk__in=pairs)}
    changed = [row for key, row in pairs.items() if now[key].version != row["version"]]
    is_new = any(change["removed"] or change["added"] for change in changes.values())
    if not changed and not is_new:
        raise DecisionError("That is so already. Nothing was changed.")
    # Proposed pairs that are now locked are as good as before.
    unsettles = is_new or any(now[row["pk"]].state != PairState.LOCKED for row in changed)
    event = DecisionEvent.objects.create(
        proposal=proposal,
        revision=proposal.revision,
        user=user,
        decision=Decision.RULE,
        sentence=sentence[:300],
        before={"pairs": changed, "changes": int(unsettles)},
        after={"versions": {str(row["pk"]): now[row["pk"]].version for row in changed}, **changes},
    )
    note_changes(proposal, int(unsettles))
    audit(user, "changed a rule", proposal, rule=sentence)
    return event


def _student(proposal: Proposal, number: int) -> Student:
    student = Student.objects.filter(cohort_id=proposal.cohort_id, number=number).first()
    if student is None:
        raise DecisionError(f"S-{number} is not a student of {proposal.cohort.name}.")
    return student


def _lock(user: User, proposal: Proposal, first: Student, second: Student) -> str:
    """Lock two students: at once if they are proposed together, otherwise at the next proposal.

    A rejection in this proposal is lifted, as by a decision; "never" stays, as a conflict.
    """
    was_rejected = _let_pair(proposal, first, second, (PairState.REJECTED,))
    proposed = proposal.pairs.filter(first=first, second=second).exclude(state=PairState.NEVER)
    if proposed.exists():
        _decide(user, proposed, PairState.LOCKED)
    else:
        LockRule.objects.get_or_create(
            proposal=proposal,
            first=first,
            second=second,
            defaults={"created_by": user.get_username()},
        )
    rest = "; they are no longer rejected" if was_rejected else ""
    return f"{first} + {second} locked together{rest}."


def _decide(user: User, pairs: QuerySet[ProposedPair], state: PairState) -> None:
    """Set the state of the pairs that are not in it already."""
    pairs.exclude(state=state).update(
        state=state,
        version=F("version") + 1,
        decided_by=user.get_username(),
        decided_at=timezone.now(),
    )


def _release(user: User, proposal: Proposal, first: Student, second: Student) -> str:
    proposal.locks.filter(first=first, second=second).delete()
    _open(proposal.pairs.filter(first=first, second=second, state__in=HELD_STATES))
    return f"{first} + {second} released."


def _keep_lock(user: User, proposal: Proposal, student: Student, partner: Student) -> str:
    """Release every lock and held pair of the student except those with the partner."""
    mine = Q(first=student) | Q(second=student)
    kept = Q(first=partner) | Q(second=partner)
    proposal.locks.filter(mine).exclude(kept).delete()
    _open(proposal.pairs.filter(mine, state__in=HELD_STATES).exclude(kept))
    return f"{student} stays with {partner}."


def _never(user: User, proposal: Proposal, first: Student, second: Student) -> str:
    if proposal.pairs.filter(first=first, second=second, state=PairState.LOCKED).exists():
        raise DecisionError(f"{first} + {second} is locked. Release the lock first.")
    _let_pair(proposal, first, second, (PairState.REJECTED,))  # one rule per pair, the stronger one
    _decide(user, proposal.pairs.filter(first=first, second=second), PairState.NEVER)
    ForbiddenPair.objects.get_or_create(
        cohort_id=proposal.cohort_id,
        proposal=None,
        first=first,
        second=second,
        defaults={"created_by": user.get_username()},
    )
    return f"{first} + {second} are never to be paired."


def _unreject(user: User, proposal: Proposal, first: Student, second: Student) -> str:
    """Undo a rejection; "never", which holds for every proposal of the cohort, stays."""
    _let_pair(proposal, first, second, (PairState.REJECTED,))
    never = ForbiddenPair.objects.filter(proposal=None, first=first, second=second)
    rest = ", but never to be paired" if never.exists() else ""
    return f"{first} + {second} are no longer rejected{rest}."


def _allow(user: User, proposal: Proposal, first: Student, second: Student) -> str:
    _let_pair(proposal, first, second, (PairState.NEVER, PairState.REJECTED))
    return f"{first} + {second} may be paired again."


def _let_pair(
    proposal: Proposal, first: Student, second: Student, states: tuple[PairState, ...]
) -> bool:
    """Remove the rules of these states, and open the pair; return True if there were any."""
    whose = Q(proposal=proposal)
    if PairState.NEVER in states:
        whose |= Q(proposal=None)
    forbidden = ForbiddenPair.objects.filter(
        whose, cohort_id=proposal.cohort_id, first=first, second=second
    )
    n_removed, _ = forbidden.delete()
    _open(proposal.pairs.filter(first=first, second=second, state__in=states))
    return n_removed > 0


def _open(pairs: QuerySet[ProposedPair]) -> None:
    pairs.update(state=PairState.OPEN, version=F("version") + 1, decided_by="", decided_at=None)


def _single(proposal: Proposal, student: Student) -> str:
    if student.number not in proposal.singles:
        Proposal.objects.filter(pk=proposal.pk).update(
            singles=sorted([*proposal.singles, student.number])
        )
    return f"{student} stays single."


def _unsingle(proposal: Proposal, student: Student) -> str:
    rest = [number for number in proposal.singles if number != student.number]
    Proposal.objects.filter(pk=proposal.pk).update(singles=rest)
    return f"{student} is to be paired."


def _check_column(proposal: Proposal, column: str) -> None:
    if column not in proposal.cohort.constraints:
        raise DecisionError(f"{column} is not a constraint column of {proposal.cohort.name}.")


def _relax(proposal: Proposal, column: str) -> str:
    _check_column(proposal, column)
    rest = [name for name in proposal.same if name != column]
    Proposal.objects.filter(pk=proposal.pk).update(same=rest)
    return f"Pairs need not have the same {column}."


def _require(proposal: Proposal, column: str) -> str:
    _check_column(proposal, column)
    if column not in proposal.same:
        Proposal.objects.filter(pk=proposal.pk).update(same=[*proposal.same, column])
    return f"Pairs must have the same {column}."


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
