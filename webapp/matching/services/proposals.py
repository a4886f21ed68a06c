"""Services that create, compute and store proposals."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from django.db import transaction
from django.utils import timezone
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.learning.roommates.proposal import Proposal as EngineProposal
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.surveys import cohort_survey, questionnaire_of
from webapp.common.free_names import free_name
from webapp.files import store
from webapp.files.quota import with_fresh_count
from webapp.files.storage import write_arrays
from webapp.jobs.services import job_enqueue
from webapp.matching.allowed_pairs import SAMPLED_PAIRS
from webapp.matching.conflicts import Conflict, find_conflicts
from webapp.matching.errors import MatchingError
from webapp.matching.like_students import GROUPS
from webapp.matching.models import LearnedModel, PairState, Proposal, ProposedPair
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.rules import HELD_STATES
from webapp.matching.services.decisions import lock_proposal


@with_fresh_count
def proposal_create(
    *,
    user: User,
    name: str,
    cohort: Cohort,
    model: LearnedModel,
    same: Sequence[str] = (),
) -> Proposal:
    """Create a proposal and start computing it, unless staff must resolve a conflict first.

    Raises
    ------
    MatchingError, QuotaError
        One sentence: the model is not learned, the questions differ, there are too few students,
            or there is no space.
    """
    if not model.is_learned:
        raise MatchingError(f"{model.name} is not learned yet.")
    if cohort.n_students < 2:
        raise MatchingError(f"{cohort.name} has {cohort.n_students} students; 2 make a pair.")
    unknown = [column for column in same if column not in cohort.constraints]
    if unknown:
        raise MatchingError(f"{unknown[0]} is not a constraint column of {cohort.name}.")
    try:
        read_answers(cohort, model)
    except InvalidProblemError as error:
        raise MatchingError(str(error)) from error
    return _create(user, name, cohort, model, same)


def read_answers(cohort: Cohort, model: LearnedModel) -> None:
    """Read and cache the answers before a transaction that needs them, so that it ends sooner.

    Raises InvalidProblemError if the model does not fit the answers.
    """
    cohort_survey(cohort, questionnaire_of(model.questions))


@transaction.atomic
def _create(
    user: User, name: str, cohort: Cohort, model: LearnedModel, same: Sequence[str]
) -> Proposal:
    proposal = Proposal.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=" ".join(name.split())[:120] or free_name(cohort.name, cohort.proposals.all()),
        cohort=cohort,
        model=model,
        same=list(same),
    )
    audit(user, "created", proposal, cohort=cohort.name, model=model.name, same=list(same))
    if not proposal_conflicts(proposal):
        return _compute(user, proposal)
    return proposal


def proposal_conflicts(
    proposal: Proposal, numbers: ProposalNumbers | None = None
) -> list[Conflict]:
    """Return the conflicts to resolve before the proposal can be computed.

    A caller that has ``numbers`` passes them: reading a cohort's answers takes most of the time.
    """
    numbers = numbers or ProposalNumbers(proposal)
    return find_conflicts(proposal, numbers.survey, lambda: numbers.model)


@with_fresh_count
def proposal_compute(*, user: User, proposal: Proposal) -> Proposal:
    """Queue the job that proposes pairs around the decisions.

    Raises MatchingError while a conflict stands, DecisionError while a job is running, QuotaError
    without space for the result.
    """
    read_answers(proposal.cohort, proposal.model)
    return _compute(user, proposal)


@transaction.atomic
def _compute(user: User, proposal: Proposal) -> Proposal:
    proposal = lock_proposal(proposal)
    conflicts = proposal_conflicts(proposal)
    if conflicts:
        raise MatchingError(f"{conflicts[0].headline}{conflicts[0].detail} Solve this first.")
    proposal.job = job_enqueue(
        user=user,
        kind="roommates.propose",
        parameters={"proposal": str(proposal.pk), "arrays": str(uuid4())},
        title=proposal.name,
        stores=proposed_bytes(proposal.cohort.n_students),
    )
    proposal.save(update_fields=["job"])
    return proposal


def proposed_bytes(n_students: int) -> int:
    """Return an upper bound of the files of one computation: n x n marginals of 4 bytes."""
    groups = 8 * min(n_students, GROUPS) ** 2
    scores = 4 * min(n_students**2 // 2, SAMPLED_PAIRS)
    return 4 * n_students**2 + 20 * n_students + groups + scores + 2_000


def write_result(
    folder: Path,
    result: EngineProposal,
    between_groups: NDArray[np.float64],
    allowed_scores: NDArray[np.float64],
) -> tuple[Path, Path]:
    """Write the files that pages read: small arrays as npz, marginals as npy for memory mapping."""
    small, large = folder / "proposal.npz", folder / "proposal.npy"
    write_arrays(
        small,
        doubt=result.doubt,
        n_allowed=result.n_allowed,
        between_groups=between_groups,
        allowed_scores=allowed_scores.astype(np.float32),
    )
    with large.open("wb") as file:
        np.save(file, result.marginals, allow_pickle=False)
    return small, large


def result_store(
    *,
    proposal_id: UUID,
    arrays: UUID,
    values: Sequence[dict[str, Any]],
    figures: dict[str, Any],
) -> None:
    """Store the rows of a computed proposal; call it in the transaction that ends the job.

    Raises
    ------
    MatchingError
        If the proposal, or its cohort, was removed during the computation.
    """
    proposal = Proposal.objects.select_for_update().filter(pk=proposal_id).first()
    if proposal is None:
        raise MatchingError("The proposal was removed meanwhile.")
    _store_pairs(proposal, arrays, values, figures)


def _store_pairs(
    proposal: Proposal, arrays: UUID, values: Sequence[dict[str, Any]], figures: dict[str, Any]
) -> None:
    """Store the pairs; decided pairs keep their state and the numbers at their decision."""
    held = {
        (pair.first_number, pair.second_number): pair
        for pair in proposal.pairs.filter(state__in=HELD_STATES)
    }
    rules = {
        tuple(sorted((rule.first.number, rule.second.number))): rule
        for rule in proposal.locks.select_related("first", "second")
    }
    keys = dict(Student.objects.filter(cohort=proposal.cohort_id).values_list("number", "pk"))
    rows = []
    for value in values:
        numbers = (value["first_number"], value["second_number"])
        pair = ProposedPair(
            proposal=proposal, first_id=keys[numbers[0]], second_id=keys[numbers[1]], **value
        )
        if numbers in held:
            _keep_decision(pair, held[numbers])
        elif numbers in rules:
            pair.state = PairState.LOCKED
            pair.decided_by = rules[numbers].created_by
            pair.decided_at = rules[numbers].created_at
        rows.append(pair)
    old = proposal.arrays
    proposal.pairs.all().delete()
    proposal.locks.all().delete()
    ProposedPair.objects.bulk_create(rows, batch_size=400)
    proposal.arrays = arrays
    proposal.revision += 1
    proposal.best_at = proposal.updated_at = timezone.now()
    proposal.changes = 0
    proposal.n_pairs = len(rows)
    proposal.n_open = sum(pair.is_open for pair in rows)
    proposal.figures = figures
    proposal.save()
    if old is not None:
        for path in proposal.files_of(old):
            transaction.on_commit(partial(store.remove, path))


_KEPT = (
    "score probability multiple doubt allowed doubt_share chips weak state decided_by decided_at"
)


def _keep_decision(pair: ProposedPair, before: ProposedPair) -> None:
    for name in _KEPT.split():
        setattr(pair, name, getattr(before, name))


@transaction.atomic
def proposal_delete(*, user: User, proposal: Proposal, typed_name: str) -> None:
    """Delete a proposal with its decisions if its name was typed."""
    if typed_name.strip() != proposal.name:
        raise MatchingError("The name does not match. Nothing was removed.")
    lock_proposal(proposal)
    audit(user, "removed", proposal, pairs=proposal.pairs.count())
    proposal.delete()


@transaction.atomic
def proposal_rename(*, user: User, proposal: Proposal, name: str) -> None:
    """Change the name of a proposal."""
    name = " ".join(name.split())[:120]
    if not name:
        raise MatchingError("The proposal needs a name.")
    audit(user, "renamed", proposal, to=name)
    Proposal.objects.filter(pk=proposal.pk).update(name=name)
