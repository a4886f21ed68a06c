"""A small simulated university that is learned from once, and rows made from it for a test."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from engine import simulate_university, train_roommates
from engine.datasets.university import SimulatedUniversity
from engine.learning.roommates.training import TrainedRoommates
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, PairsOrigin, Student
from webapp.cohorts.services.cohorts import cohort_set_pairs
from webapp.housing.models import PairState, Placement
from webapp.housing.pairs.placing import pairs_create
from webapp.jobs.models import Job
from webapp.jobs.runner import run_job
from webapp.matching.models import LearnedModel
from webapp.matching.results import learning_figures, weight_rows

STUDENTS = 32


@dataclass(frozen=True, slots=True)
class Past:
    """A simulated university, and the weights learned from its first year."""

    university: SimulatedUniversity
    trained: TrainedRoommates


def simulate_past() -> Past:
    """Simulate three years and learn from the pairs of the first."""
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


def cohort_to_house(user: User, past: Past) -> Cohort:
    """Store the last simulated year, with ids as a housing system writes them."""
    cohort = cohort_of(user, past, 2, "First-years", with_pairs=False)
    for student in cohort.students.all():
        student.original_id = student.original_id.removeprefix("=")
        student.save(update_fields=["original_id"])
    return cohort


def learned_from(user: User, past: Past, returning: Cohort) -> LearnedModel:
    """Store the weights that a session learned as a model of the user's organisation."""
    from django.utils import timezone

    from engine import question_weights

    model = LearnedModel.objects.create(
        organisation=user.organisation,
        created_by=user,
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


def place_pairs(
    user: User, cohort: Cohort, model: LearnedModel, same: tuple[str, ...] = ("Gender",)
) -> Placement:
    """Propose pairs for a cohort and compute them."""
    placement = pairs_create(user=user, name="First-years", cohort=cohort, model=model, same=same)
    jobs = run_waiting()
    assert [job.state for job in jobs] == ["succeeded"], jobs and jobs[0].error
    placement.refresh_from_db()
    return placement


def check_agrees(placement: Placement) -> None:
    """Rows of pairs, beds, locks and accepted rooms say the same, and nobody has two beds."""
    together: dict[int, tuple[int, bool]] = {}
    for pair in placement.pairs.all():
        if pair.shares_a_room:
            seat = (pair.room_id, pair.state == PairState.LOCKED)
            together |= {pair.first_number: seat, pair.second_number: seat}
    beds = placement.places.with_bed()
    full = [
        room for room, count in Counter(beds.values_list("room", flat=True)).items() if count == 2
    ]
    beds = beds.filter(room__in=full)  # a roommate who is left waits alone
    lived = {
        n: (room, locked) for n, room, locked in beds.values_list("number", "room", "is_locked")
    }
    assert lived == together
    taken = Counter(beds.values_list("room_id", "bed"))
    assert not taken or max(taken.values()) == 1
    accepted = {
        room.room_id
        for room in placement.accepted_rooms.all()
        if room.members == sorted(beds.filter(room=room.room_id).values_list("number", flat=True))
    }
    assert accepted == {pair.room_id for pair in placement.pairs.filter(state=PairState.ACCEPTED)}
    n_open = placement.pairs.filter(state=PairState.OPEN).count()
    assert (placement.n_pairs, placement.n_open) == (placement.pairs.count(), n_open)
    n_people, n_placed = placement.places.present().count(), placement.places.with_bed().count()
    assert (placement.n_people, placement.n_placed) == (n_people, n_placed)
