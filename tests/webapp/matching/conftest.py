"""A small university that was learned from once, and rows made from it for every test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from engine import simulate_university, train_roommates
from engine.datasets.university import SimulatedUniversity
from engine.learning.roommates.training import TrainedRoommates
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, PairsOrigin, Student
from webapp.cohorts.services.cohorts import cohort_set_pairs
from webapp.jobs.models import Job
from webapp.jobs.runner import run_job
from webapp.matching.models import LearnedModel, PairState, Proposal, ProposedPair
from webapp.matching.results import learning_figures, weight_rows
from webapp.matching.services.proposals import proposal_create

STUDENTS = 32


@dataclass(frozen=True, slots=True)
class Past:
    """What was simulated and what was learned from its first year."""

    university: SimulatedUniversity
    trained: TrainedRoommates


@pytest.fixture(scope="session")
def past() -> Past:
    university = simulate_university(STUDENTS, 3, rng=np.random.default_rng(4), by_gender=True)
    year = university.cohorts[0]
    return Past(university, train_roommates([(year.survey, year.pairs)], ridge=10.0))


def cohort_of(user: User, past: Past, year: int, name: str, *, with_pairs: bool) -> Cohort:
    """Store one simulated year as a cohort of the user's organisation."""
    data = past.university.cohorts[year]
    questions = [
        {"name": q.name, "kind": q.kind, "levels": list(q.levels)}
        for q in data.survey.questionnaire.questions
    ]
    cohort = Cohort.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=name,
        questions=questions,
        constraints=["Gender"],
        n_students=STUDENTS,
    )
    genders = data.survey.attributes["Gender"]
    Student.objects.bulk_create(
        Student(
            cohort=cohort,
            number=1001 + k,
            original_id=f"=N{k:03d}",
            answers=data.survey.answers[k].tolist(),
            attributes={"Gender": genders[k]},
        )
        for k in range(STUDENTS)
    )
    if with_pairs:
        pairs = [(int(a), int(b)) for a, b in data.pairs]
        cohort_set_pairs(
            user=user, cohort=cohort, pairs=pairs, origin=PairsOrigin.IMPORTED, note=""
        )
    return cohort


@pytest.fixture
def returning(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 0, "Returning 2024", with_pairs=True)


@pytest.fixture
def later_year(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 1, "Returning 2025", with_pairs=True)


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 2, "First-years", with_pairs=False)


@pytest.fixture
def learned(bob: User, past: Past, returning: Cohort) -> LearnedModel:
    """A learned model, from the weights of the session."""
    from django.utils import timezone

    from engine import question_weights

    model = LearnedModel.objects.create(
        organisation=bob.organisation,
        created_by=bob,
        name="Returning",
        questions=returning.questions,
        sources=[
            {
                "cohort": str(returning.pk),
                "name": returning.name,
                "students": STUDENTS,
                "pairs": STUDENTS // 2,
                "simulated": False,
            }
        ],
        options={"ridge": 10.0, "relative_gap": 1e-4, "rho": 1.0, "method": "auto"},
        learned_at=timezone.now(),
        figures=learning_figures(past.trained, 1e-4),
        weights=weight_rows(question_weights(past.trained.model)),
    )
    model.cohorts.set([returning])
    past.trained.model.save(model.path)
    return model


def run_waiting() -> list[Job]:
    """Run every waiting job in place and return them."""
    jobs = list(Job.objects.filter(state="queued").order_by("created_at"))
    for job in jobs:
        run_job(job.pk, watched=False)
        job.refresh_from_db()
    return jobs


@pytest.fixture
def make_proposal(bob: User, first_years: Cohort, learned: LearnedModel) -> Callable[..., Proposal]:
    """A function that proposes pairs for the first-years and computes them."""

    def make(same: tuple[str, ...] = ("Gender",)) -> Proposal:
        proposal = proposal_create(
            user=bob, name="First-years", cohort=first_years, model=learned, same=same
        )
        jobs = run_waiting()
        assert [job.state for job in jobs] == ["succeeded"], jobs and jobs[0].error
        proposal.refresh_from_db()
        return proposal

    return make


@pytest.fixture
def proposal(make_proposal: Callable[..., Proposal]) -> Iterator[Proposal]:
    """A proposal; whatever a test does to its pairs, the counts that lists show stay true."""
    made = make_proposal()
    yield made
    left = Proposal.objects.filter(pk=made.pk).first()
    if left is not None:
        n_open = left.pairs.filter(state=PairState.OPEN).count()
        assert (left.n_pairs, left.n_open) == (left.pairs.count(), n_open)


def two_of(proposal: Proposal, gender: str = "F") -> list[ProposedPair]:
    """Return two proposed pairs of one gender."""
    return list(proposal.pairs.filter(first__attributes__Gender=gender)[:2])
