"""Services that create and compute placements in pairs, and store what was computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.learning.roommates.proposal import Proposal as EngineProposal
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey, questionnaire_of
from webapp.common.free_names import free_name
from webapp.database.pieces import PIECE, in_pieces
from webapp.database.rows import create_rows
from webapp.files.quota import with_fresh_count
from webapp.files.storage import write_arrays
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    HELD_STATES,
    BuildingList,
    PairState,
    Placement,
    PlacementVersion,
    Room,
    VersionOrigin,
)
from webapp.housing.pairs.conflicts import Conflict, find_conflicts
from webapp.housing.pairs.decisions import lock_pairs
from webapp.housing.pairs.numbers import PairNumbers
from webapp.housing.pairs.rules import add_locks
from webapp.housing.rules import NO, PlacementRules
from webapp.housing.services.fitting import VersionPlan
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.versions import version_save
from webapp.housing.webhook_reports import report_finished
from webapp.jobs.models import Job
from webapp.jobs.services import job_enqueue
from webapp.matching.allowed_pairs import SAMPLED_PAIRS
from webapp.matching.like_students import GROUPS
from webapp.matching.models import LearnedModel

PAIR, PAIRS = "Pair", "Pairs of"  # hall of the rooms of pairs, and begin of the list's name


@with_fresh_count
def pairs_create(
    *,
    user: User,
    name: str,
    cohort: Cohort,
    model: LearnedModel,
    same: Sequence[str] = (),
    seed: int | None = None,
) -> Placement:
    """Create a placement in pairs and start computing it, unless staff must resolve a conflict.

    Raises
    ------
    HousingError, QuotaError
        One sentence: the model is not learned, the questions differ, there are too few students,
            or there is no space.
    """
    if not model.is_learned:
        raise HousingError(_("%(model)s is not learned yet.") % {"model": model.name})
    if cohort.n_students < 2:
        raise HousingError(
            _("%(cohort)s has %(students)s students; 2 make a pair.")
            % {"cohort": cohort.name, "students": cohort.n_students}
        )
    unknown = [column for column in same if column not in cohort.constraints]
    if unknown:
        raise HousingError(
            _("%(unknown)s is not a constraint column of %(cohort)s.")
            % {"unknown": unknown[0], "cohort": cohort.name}
        )
    try:
        read_answers(cohort, model)
    except InvalidProblemError as error:
        raise HousingError(str(error)) from error
    return _create(user, name, cohort, model, same, seed)


def read_answers(cohort: Cohort, model: LearnedModel) -> None:
    """Read and cache the answers before a transaction that needs them, so that it ends sooner.

    Raises InvalidProblemError if the model does not fit the answers.
    """
    cohort_survey(cohort, questionnaire_of(model.questions))


@transaction.atomic
def _create(
    user: User,
    name: str,
    cohort: Cohort,
    model: LearnedModel,
    same: Sequence[str],
    seed: int | None,
) -> Placement:
    key = uuid4()
    placement = Placement.objects.create(
        pk=key,
        organisation=user.own_organisation,
        created_by=user,
        name=" ".join(name.split())[:120] or free_name(cohort.name, cohort.placements.all()),
        cohort=cohort,
        buildings=BuildingList.everything.create(
            organisation=user.own_organisation,
            created_by=user,
            name=f"{PAIRS} {key}",
            is_private=True,
        ),
        model=model,
        rules=rules_of_pairs(same),
        is_pairs=True,
    )
    audit(user, "created", placement, cohort=cohort.name, model=model.name, same=list(same))
    if not pair_conflicts(placement):
        return _compute(user, placement, seed)
    return placement


def rules_of_pairs(same: Sequence[str]) -> dict[str, Any]:
    """Return the rules of a placement in pairs: requests, halls and needs do not count."""
    return PlacementRules(same=tuple(same), mutual=NO, one_sided=NO).to_json()


def pair_conflicts(placement: Placement, numbers: PairNumbers | None = None) -> list[Conflict]:
    """Return the conflicts to resolve before the pairs can be computed.

    A caller that has ``numbers`` passes them: reading a cohort's answers takes most of the time.
    """
    numbers = numbers or PairNumbers(placement)
    rules = add_locks(placement, numbers.rules)
    return find_conflicts(rules, numbers.survey, lambda: numbers.model)


@with_fresh_count
def pairs_compute(*, user: User, placement: Placement, seed: int | None = None) -> Placement:
    """Queue the job that computes pairs around the decisions.

    Raises HousingError while a conflict stands or a job is running and for a published placement,
    QuotaError without space for the result.
    """
    read_answers(placement.cohort, placement.model)
    return _compute(user, placement, seed)


@transaction.atomic
def _compute(user: User, placement: Placement, seed: int | None) -> Placement:
    placement = lock_pairs(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Withdraw the publication first.")
            % {"placement": placement.name}
        )
    conflicts = pair_conflicts(placement)
    if conflicts:
        raise HousingError(
            _("%(headline)s%(detail)s Solve this first.")
            % {"headline": conflicts[0].headline, "detail": conflicts[0].detail}
        )
    placement.job = job_enqueue(
        user=user,
        kind="roommates.propose",
        parameters={"placement": str(placement.pk), "arrays": str(uuid4())},
        seed=seed,
        title=placement.name,
        stores=proposed_bytes(placement.cohort.n_students),
    )
    placement.save(update_fields=["job"])
    return placement


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
    small, large = folder / "placement.npz", folder / "placement.npy"
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


def rooms_prepare(placement: Placement, n_pairs: int) -> None:
    """Make the rooms of computed pairs ahead of the transaction that stores them.

    A placement may have more rooms than pairs, so rooms that stay empty do no harm.

    Raises
    ------
    HousingError
        If the placement was removed during the computation.
    """

    def make() -> bool:
        locked = lock_placement(placement)
        wanted = _rooms_wanted(locked, n_pairs)
        return len(ensure_rooms(locked, wanted, at_most=PIECE)) < wanted

    in_pieces(make)


@dataclass(frozen=True, slots=True)
class ComputedPairs:
    """The result of a run: the values of every pair, figures, and the name of its files."""

    job: Job | None
    arrays: UUID
    values: Sequence[dict[str, Any]]
    figures: dict[str, Any]

    def version(self, placement: Placement) -> PlacementVersion:
        """Return the pairs as a version of a placement as it is now, not saved yet."""
        rows = _rows(placement, self.values)
        return PlacementVersion(
            placement=placement,
            origin=VersionOrigin.RUN,
            job=self.job,
            created_by=self.job.created_by if self.job is not None else None,
            rules=placement.rules,
            rows=_places(placement, rows),
            figures=self.figures,
            outcome=outcome_of_pairs(rows, placement.cohort.n_students),
            arrays=self.arrays,
            pairs=rows,
        )


def result_store(
    placement: Placement, computed: ComputedPairs, plan: VersionPlan | None = None
) -> PlacementVersion:
    """Store computed pairs as a version and use it; call it in the transaction that ends the job.

    The pairs before it stay as a version that can be restored. Decisions wait while a job runs, so
    that the new pairs fit them. ``plan`` was made of the same result before this transaction.

    Raises
    ------
    HousingError
        If the placement, or its cohort, was removed during the computation.
    """
    placement = lock_placement(placement)
    if plan is not None and not plan.holds(placement):
        plan = None
    version = computed.version(placement) if plan is None else plan.version
    version_save(placement, version, plan)
    n_pairs, n_students = len(computed.values), placement.cohort.n_students
    report_finished(placement, placed=2 * n_pairs, students=n_students)
    return version


def _rows(placement: Placement, values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of every pair with its room; decided pairs keep room, state and figures."""
    held = {
        (pair.first_number, pair.second_number): pair
        for pair in placement.pairs.filter(state__in=HELD_STATES)
    }
    locks = {
        tuple(sorted((lock.first.number, lock.second.number))): lock
        for lock in placement.locks.select_related("first", "second")
    }
    keys = dict(placement.cohort.students.values_list("number", "pk"))
    numbers = [(value["first_number"], value["second_number"]) for value in values]
    taken = {held[pair].room_id for pair in numbers if pair in held}
    free = iter(_free_rooms(placement, taken, len(values)))
    rows = []
    for value, pair in zip(values, numbers, strict=True):
        row = {
            **value,
            "first_id": keys[pair[0]],
            "second_id": keys[pair[1]],
            "state": PairState.OPEN.value,
            "decided_by": "",
            "decided_at": None,
        }
        if pair in held:
            row["room_id"], row["state"] = held[pair].room_id, held[pair].state
        else:
            row["room_id"] = next(free)
        if pair in locks and pair not in held:
            row["state"] = PairState.LOCKED.value
            row["decided_by"] = locks[pair].created_by
            row["decided_at"] = locks[pair].created_at.isoformat()
        rows.append(row)
    return rows


def _free_rooms(placement: Placement, taken: set[int], n_pairs: int) -> list[int]:
    """Return the rooms that no decided pair holds, after adding as many as the cohort needs."""
    rooms = ensure_rooms(placement, _rooms_wanted(placement, n_pairs))
    return [room for room in rooms if room not in taken]


def _rooms_wanted(placement: Placement, n_pairs: int) -> int:
    return max(n_pairs, (placement.cohort.n_students + 1) // 2)


def ensure_rooms(placement: Placement, wanted: int, at_most: int | None = None) -> list[int]:
    """Return the keys of the rooms of a placement in pairs, after adding those it lacks.

    ``at_most`` is the largest number of rooms to add; None adds as many as wanted.
    """
    rooms = placement.buildings.rooms
    n_rooms = rooms.count()
    create_rows(
        [
            Room(
                buildings=placement.buildings,
                hall=PAIR,
                name=str(k + 1),
                capacity=2,
                position=k,
            )
            for k in range(n_rooms, wanted)[:at_most]
        ]
    )
    return list(rooms.order_by("position").values_list("pk", flat=True))


def _places(placement: Placement, rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the rows of students that a version keeps: key, room, bed, locked, left, doubt."""
    places = {
        key: [key, row["room_id"], bed, row["state"] == PairState.LOCKED, False, row["doubt_share"]]
        for row in rows
        for bed, key in ((1, row["first_id"]), (2, row["second_id"]))
    }
    students = placement.cohort.students.values_list("pk", flat=True)
    return [places.get(key, [key, None, None, False, False, None]) for key in students]


def outcome_of_pairs(rows: Sequence[Mapping[str, Any]], n_students: int) -> dict[str, Any]:
    """Return the figures by which versions are compared, of rows of pairs."""
    scores = [row["score"] for row in rows]
    nobody = [0, 0]
    return {
        "people": n_students,
        "placed": 2 * len(rows),
        "total": sum(scores),
        "mean": sum(scores) / len(scores) if scores else None,
        **dict.fromkeys(("mutual", "one_sided", "first_choice", "any_choice", "needs"), nobody),
        "low": None,
        "rooms_below": 0,
        "rooms_shared": len(rows),
        "beds_free": 0,
        "moved": 0,
    }
