"""Shapes of cohorts, roommate models, proposals of pairs and decisions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, OneOf, Paging, RowNumber, Seed, SentKey, Time
from webapp.cohorts.models import Cohort as CohortRow
from webapp.housing.models import PlacedPair
from webapp.housing.models import Placement as PlacementRow
from webapp.matching.models import LearnedModel
from webapp.matching.services.learning import METHODS

Method = Annotated[str, OneOf(METHODS)]


class Question(Answer):
    """A question of a cohort."""

    name: str
    kind: str
    levels: list[str]


class Cohort(Answer):
    """Students to house, or of a past year; never an answer of a student."""

    id: Key
    name: str
    students: int
    pairs: int
    is_simulated: bool
    questions: list[Question]
    constraints: list[str]
    needs: list[str] = Field(description="those of the constraints that say what a student needs")

    @classmethod
    def of(cls, cohort: CohortRow) -> "Cohort":
        """Return the answer for a cohort."""
        return cls(
            id=cohort.pk,
            name=cohort.name,
            students=cohort.n_students,
            pairs=cohort.n_pairs,
            is_simulated=cohort.is_simulated,
            questions=[
                Question(name=q["name"], kind=q["kind"], levels=list(q["levels"]))
                for q in cohort.questions
            ],
            constraints=[str(name) for name in cohort.constraints],
            needs=[str(name) for name in cohort.needs],
        )


class RoommateModel(Answer):
    """A model learned from past roommates."""

    id: Key
    name: str
    cohorts: list[Key]
    is_learned: bool
    is_checked: bool
    is_simulated: bool
    is_set_by_hand: bool = Field(description="staff set its weights; nothing was learned")
    figures: dict[str, Any] = Field(description="objective, gap and other numbers of the run")
    weights: list[dict[str, Any]]
    checked_on: str = Field(description="name of the cohort that it was checked on, or empty")
    findings: dict[str, Any] = Field(description="numbers of that check")
    check_job: Key | None = Field(description="the job of the last check")
    intervals_job: Key | None = Field(
        description="the job that writes intervals into the weights, after learning"
    )
    job: Key | None
    created_at: Time

    @classmethod
    def of(cls, model: LearnedModel) -> "RoommateModel":
        """Return the answer for a model with its weight for each question."""
        return cls(
            id=model.pk,
            name=model.name,
            cohorts=[cohort.pk for cohort in model.cohorts.all()],
            is_learned=model.is_learned,
            is_checked=model.is_checked,
            is_simulated=model.is_simulated,
            is_set_by_hand=model.is_set_by_hand,
            figures=model.figures,
            weights=model.weights,
            checked_on=model.checked_name,
            findings=model.findings,
            check_job=model.check_job_id or None,
            intervals_job=model.intervals_job_id or None,
            job=model.job_id or None,
            created_at=model.created_at,
        )


class NewRoommateModel(Body):
    """A model to learn from past cohorts with pairs."""

    cohorts: list[SentKey]
    name: str = ""
    ridge: float = Field(100.0, description="lambda; 100 by default", allow_inf_nan=False)
    relative_gap: float = Field(1e-4, description="1e-4 by default", allow_inf_nan=False)
    rho: float = Field(1.0, description="reweighting; 1 by default", allow_inf_nan=False)
    method: Method = Field("auto", description="auto by default")
    seed: Seed | None = Field(None, description="0 to 2,147,483,647; chosen for you when left out")
    check_on: SentKey | None = Field(None, description="a later cohort with pairs")


class SetRoommateModel(Body):
    """A model of weights that staff set before a past year exists."""

    cohort: SentKey
    name: str = Field("", max_length=120)
    importance: dict[str, float] = Field(
        description="by question: -1 unlike is better, 0 does not matter, 0.5, 1 or 2 alike matters"
    )


class Proposal(Answer):
    """Pairs proposed for a cohort."""

    id: Key
    name: str
    cohort: Key
    model: Key
    same: list[str]
    is_computed: bool
    best_at: Time | None = Field(description="when the certificate was made")
    changes: int = Field(description="decisions since then")
    forbidden: int = Field(description="its pairs that are by now rejected or never to be paired")
    figures: dict[str, Any]
    conflicts: list[str] = Field(description="what must be decided before pairs can be proposed")
    job: Key | None
    created_at: Time

    @classmethod
    def of(
        cls,
        proposal: PlacementRow,
        forbidden: Mapping[Any, int],
        conflicts: list[str] | None = None,
    ) -> "Proposal":
        """Return the answer for a proposal; ``forbidden`` counts pairs by the proposal's key."""
        return cls(
            id=proposal.pk,
            name=proposal.name,
            cohort=proposal.cohort_id,
            model=proposal.model_id,
            same=list(proposal.same),
            is_computed=proposal.is_computed,
            best_at=proposal.best_at,
            changes=proposal.changes,
            forbidden=forbidden.get(proposal.pk, 0),
            figures=proposal.figures,
            conflicts=conflicts or [],
            job=proposal.job_id or None,
            created_at=proposal.created_at,
        )


class NewProposal(Body):
    """A proposal to compute."""

    cohort: SentKey
    model: SentKey
    name: str = ""
    same: list[str] = Field(default=[])


class Pair(Answer):
    """Two students proposed as roommates, by ids on screen."""

    id: int
    first: str = Field(description="pseudonymous id, such as S-1121")
    second: str
    score: float = Field(description="nats")
    probability: float = Field(
        description="share of pairings of this model in which the two share a room"
    )
    state: Annotated[str, OneOf(("open", "accepted", "locked", "swapped", "rejected", "never"))]
    version: int
    decided_by: str

    @classmethod
    def of(cls, pair: PlacedPair) -> "Pair":
        """Return the answer for a pair."""
        return cls(
            id=pair.pk,
            first=f"S-{pair.first_number}",
            second=f"S-{pair.second_number}",
            score=pair.score,
            probability=pair.probability,
            state=pair.state,
            version=pair.version,
            decided_by=pair.decided_by,
        )


class PairExportQuery(Body):
    """Query for the columns of a file of pairs."""

    names: bool = Field(
        False,
        description="names, preferred names and e-mails of both students in the last columns; "
        "refused for people who do not see names",
    )


class PairQuery(Paging):
    """Query for the pairs of a proposal."""

    state: str = Field("", description="open, accepted, locked, swapped, rejected or never")


class NewDecision(Body):
    """A decision about a pair."""

    decision: Literal["accept", "reject", "lock", "never", "reopen"]
    version: RowNumber = Field(description="the version of the pair that was looked at")


class Decided(Answer):
    """Result of a decision."""

    sentence: str
