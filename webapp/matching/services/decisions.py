"""Decisions about pairs. Each names the version on its page; the second of two is refused."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.matching.errors import DecisionError, PairsChangedError
from webapp.matching.models import (
    Decision,
    DecisionEvent,
    ForbiddenPair,
    PairState,
    Proposal,
    ProposedPair,
)
from webapp.matching.services.rule_record import restore_rules

_STATE_AFTER = {
    Decision.ACCEPT: PairState.ACCEPTED,
    Decision.REJECT: PairState.REJECTED,
    Decision.LOCK: PairState.LOCKED,
    Decision.NEVER: PairState.NEVER,
    Decision.REOPEN: PairState.OPEN,
}
_WORDS = {
    Decision.ACCEPT: "accepted",
    Decision.REJECT: "rejected; they are paired again when you propose again",
    Decision.LOCK: "locked together",
    Decision.NEVER: "marked never to be paired",
    Decision.REOPEN: "open again",
}
_AUDIT_VERBS = {
    Decision.ACCEPT: "accepted",
    Decision.REJECT: "rejected",
    Decision.LOCK: "locked",
    Decision.NEVER: "never paired",
    Decision.REOPEN: "reopened",
}
_ANEW = "The pairs were proposed again meanwhile. Nothing was changed."
# Decisions after which the proposed pairing is no longer the best under the rules.
_UNSETTLING = {PairState.REJECTED, PairState.NEVER, PairState.SWAPPED}
# States with a rule: rejected in the proposal, never for the whole cohort.
_FORBIDDING = {PairState.REJECTED, PairState.NEVER}


def lock_proposal(proposal: Proposal) -> Proposal:
    """Return the proposal's row, locked until the transaction ends.

    Raises DecisionError while its pairs are being computed: a decision taken now would be lost.
    """
    locked = (
        Proposal.objects.select_for_update(of=("self",)).select_related("job").get(pk=proposal.pk)
    )
    if locked.job is not None and locked.job.is_active:
        raise DecisionError("Pairs are being proposed right now. Decide when that is done.")
    return locked


def note_changes(proposal: Proposal, count: int) -> None:
    """Update the figures that lists show of a locked proposal after a change of its pairs.

    ``count`` is the change in the number of decisions since the certificate.
    """
    Proposal.objects.filter(pk=proposal.pk).update(
        changes=F("changes") + count,
        n_open=proposal.pairs.filter(state=PairState.OPEN).count(),
        updated_at=timezone.now(),
    )


@transaction.atomic
def pairs_decide(
    *, user: User, proposal: Proposal, decision: Decision, versions: dict[int, int]
) -> DecisionEvent:
    """Decide about one or more pairs, all or none.

    Parameters
    ----------
    versions : dict
        {key of the pair: version on the user's page}.

    Raises
    ------
    PairsChangedError
        If somebody has changed one of the pairs; the message names the pair and the person.
    DecisionError
        If a pair is locked and the decision is not about the lock, if one to accept or lock is
            forbidden, or if a job is running.
    """
    proposal = lock_proposal(proposal)
    pairs = list(proposal.pairs.filter(pk__in=versions))
    if len(pairs) != len(versions) or not pairs:
        raise PairsChangedError(_ANEW)
    state = _STATE_AFTER[decision]
    for pair in pairs:
        _check_may_change(pair, state, bulk=len(pairs) > 1)
    before = [pair_row(pair) for pair in pairs]
    for pair in pairs:
        _set_state(user, pair, state, versions[pair.pk])
    forbidden = _sync_forbidden(user, proposal, pairs, before, state)
    sentence = _sentence(pairs, decision)
    return record_event(
        user=user,
        proposal=proposal,
        decision=decision,
        sentence=sentence,
        before=before,
        pairs=pairs,
        forbidden=forbidden,
        verb=_AUDIT_VERBS[decision],
        unsettles=state in _UNSETTLING,
    )


def _check_may_change(pair: ProposedPair, state: PairState, *, bulk: bool) -> None:
    if pair.state == PairState.LOCKED and state not in (PairState.OPEN, PairState.LOCKED):
        raise DecisionError(f"{pair.label} is locked. Release the lock first.")
    if pair.state == PairState.LOCKED and bulk and state == PairState.OPEN:
        raise DecisionError(f"{pair.label} is locked. Release locks one by one.")
    if state in (PairState.ACCEPTED, PairState.LOCKED) and pair.state != PairState.NEVER:
        never = ForbiddenPair.objects.filter(
            proposal=None, first=pair.first_id, second=pair.second_id
        )
        if never.exists():
            raise DecisionError(f"{pair.label} are never to be paired. Allow them first.")
    if state == PairState.REJECTED and pair.state == PairState.NEVER:
        # A rejection holds for this proposal only: it would lift the rule for the whole cohort.
        raise DecisionError(f"{pair.label} are never to be paired, so not in this proposal either.")


def _set_state(user: User, pair: ProposedPair, state: PairState, version: int) -> None:
    is_open = state == PairState.OPEN
    written = {
        "state": state.value,
        "version": version + 1,
        "decided_by": "" if is_open else user.get_username(),
        "decided_at": None if is_open else timezone.now(),
    }
    if not ProposedPair.objects.filter(pk=pair.pk, version=version).update(**written):
        raise PairsChangedError(_changed_sentence(pair))
    for name, value in written.items():
        setattr(pair, name, value)


def _changed_sentence(pair: ProposedPair) -> str:
    fresh = ProposedPair.objects.filter(pk=pair.pk).first()
    if fresh is None:
        return f"{pair.label} is no longer proposed. Nothing was changed."
    who = fresh.decided_by or "somebody else"
    return (
        f"{fresh.label} was changed to “{PairState(fresh.state).label.lower()}” by {who} "
        "meanwhile. Nothing was changed."
    )


def _sync_forbidden(
    user: User,
    proposal: Proposal,
    pairs: Sequence[ProposedPair],
    before: Sequence[dict[str, Any]],
    state: PairState,
) -> dict[str, list[list[int]]]:
    """Make rules agree with the states; return the removed and added rules, for undo.

    Only the rule of a pair's former state is removed: a permanent rule may come from another
    proposal of the cohort, and holds until somebody allows the pair.
    """
    removed, added = [], []
    for pair, row in zip(pairs, before, strict=True):
        key = [pair.first_id, pair.second_id]
        if row["state"] != state and _remove_rule_of(row["state"], proposal, pair):
            removed.append([row["state"] == PairState.NEVER, *key])
        if state in _FORBIDDING:
            _, is_new = ForbiddenPair.objects.get_or_create(
                cohort_id=proposal.cohort_id,
                proposal=proposal if state == PairState.REJECTED else None,
                first_id=pair.first_id,
                second_id=pair.second_id,
                defaults={"created_by": user.get_username()},
            )
            if is_new:
                added.append([state == PairState.NEVER, *key])
    return {"removed": removed, "added": added}


def _remove_rule_of(state: str, proposal: Proposal, pair: ProposedPair) -> bool:
    """Remove the rule of a former state; return True if there was one."""
    if state not in _FORBIDDING:
        return False
    rule = ForbiddenPair.objects.filter(
        proposal=proposal if state == PairState.REJECTED else None,
        first=pair.first_id,
        second=pair.second_id,
    )
    return rule.delete()[0] > 0


def _sentence(pairs: Sequence[ProposedPair], decision: Decision) -> str:
    if len(pairs) == 1:
        return f"{pairs[0].label} {_WORDS[decision]}."
    return f"{len(pairs):,} pairs {_WORDS[decision]}."


def pair_row(pair: ProposedPair) -> dict[str, Any]:
    """Return the fields that undo needs to restore a pair."""
    names = (
        "pk first_id second_id first_number second_number score probability multiple doubt "
        "allowed doubt_share chips weak state version decided_by"
    )
    row = {name: getattr(pair, name) for name in names.split()}
    row["decided_at"] = pair.decided_at.isoformat() if pair.decided_at else None
    return row


def record_event(
    *,
    user: User,
    proposal: Proposal,
    decision: Decision,
    sentence: str,
    before: list[dict[str, Any]],
    pairs: Sequence[ProposedPair],
    forbidden: dict[str, list[list[int]]],
    verb: str,
    unsettles: bool,
) -> DecisionEvent:
    """Write the log that undo reads, the audit line and the proposal's count of changes."""
    event = DecisionEvent.objects.create(
        proposal=proposal,
        revision=proposal.revision,
        user=user,
        decision=decision,
        sentence=sentence,
        before={"pairs": before, "changes": int(unsettles)},
        after={
            "versions": {str(pair.pk): pair.version for pair in pairs},
            "forbidden": forbidden,
        },
    )
    note_changes(proposal, int(unsettles))
    shown = [pair.label for pair in pairs[:50]]
    audit(user, verb, proposal, pairs=shown, count=len(pairs))
    return event


@transaction.atomic
def decision_undo(*, user: User, proposal: Proposal, event: DecisionEvent) -> str:
    """Undo one decision if nothing else has changed its pairs since; return a sentence.

    Raises PairsChangedError if a later decision prevents it.
    """
    proposal = lock_proposal(proposal)
    if event.revision != proposal.revision:
        raise PairsChangedError("The pairs were proposed again since then; undo stops there.")
    claimed = DecisionEvent.objects.filter(pk=event.pk, undone_at=None).update(
        undone_at=timezone.now()
    )
    if not claimed:
        raise PairsChangedError("This decision was already undone.")
    rows = {row["pk"]: row for row in event.before["pairs"]}
    versions = {int(key): version for key, version in event.after["versions"].items()}
    replace_pairs(proposal, rows, versions)
    _undo_forbidden(user, proposal, event)
    if event.decision == Decision.RULE:
        restore_rules(user, proposal, event.after)
    note_changes(proposal, -event.before["changes"])
    audit(user, "undid", proposal, decision=event.sentence)
    return f"Undone. {_undone_words(event)}"


def _undone_words(event: DecisionEvent) -> str:
    labels = [
        f"S-{row['first_number']} + S-{row['second_number']}" for row in event.before["pairs"]
    ]
    if event.decision == Decision.RULE:
        return "The rules are as before."
    if len(labels) > 2:
        return f"{len(labels):,} pairs are as they were."
    return f"{' and '.join(labels)} {'is' if len(labels) == 1 else 'are'} as before."


def replace_pairs(
    proposal: Proposal, rows: dict[int, dict[str, Any]], versions: dict[int, int]
) -> list[ProposedPair]:
    """Replace the contents of pairs whose versions are as given; the proposal must be locked.

    The rows are deleted and created again under their keys: updated one by one, two swapped
    pairs would break the rule that a student is in one pair only.

    Raises PairsChangedError naming a pair that has another version.
    """
    present = {pair.pk: pair for pair in proposal.pairs.filter(pk__in=rows)}
    for key, row in rows.items():
        if key not in present:
            raise PairsChangedError(_ANEW)
        if present[key].version != versions[key]:
            raise PairsChangedError(_changed_sentence(present[key]))
        row["version"] = versions[key] + 1
    proposal.pairs.filter(pk__in=rows).delete()
    return ProposedPair.objects.bulk_create(
        [ProposedPair(proposal=proposal, **row) for row in rows.values()]
    )


def _undo_forbidden(user: User, proposal: Proposal, event: DecisionEvent) -> None:
    changes = event.after["forbidden"]
    for is_never, first, second in changes["added"]:
        ForbiddenPair.objects.filter(
            proposal=None if is_never else proposal, first_id=first, second_id=second
        ).delete()
    for is_never, first, second in changes["removed"]:
        ForbiddenPair.objects.get_or_create(
            cohort_id=proposal.cohort_id,
            proposal=None if is_never else proposal,
            first_id=first,
            second_id=second,
            defaults={"created_by": user.get_username()},
        )
