"""The same year twice: answered on the students' pages, and read from Qualtrics' file of it."""

import random
from datetime import timedelta

import numpy as np
from django.utils import timezone

from tests.webapp.surveys.same_year import as_qualtrics, import_file, scores_of
from webapp.accounts.models import User
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.cohorts import cohort_from_answers

STUDENTS = 200


def answer_year(opened: Questionnaire) -> list[Participant]:
    """Answers of a year, a few of them blank; roommates k and k + 1 are somewhat alike."""
    rng = random.Random(11)
    questions = questions_of(opened.content)
    people: list[Participant] = []
    for k in range(STUDENTS):
        said = {}
        for question in questions:
            value: int | None = rng.randrange(len(question.options))
            if k % 2 and rng.random() < 0.5:
                value = people[-1].answers[question.key]
            said[question.key] = None if rng.random() < 0.01 else value
        now = timezone.now()
        people.append(
            Participant(
                questionnaire=opened, identifier=f"N{k:04d}", answers=said, updated_at=now,
                finished_at=now,
            )
        )  # fmt: skip
    return Participant.objects.bulk_create(people)


def leave_marks(opened: Questionnaire, people: list[Participant]) -> None:
    """Some stop half-way, some answered before and changed their mind."""
    questions = questions_of(opened.content)
    stopped = {q.key: 0 for q in questions[:5]}
    before = timezone.now() - timedelta(days=2)
    half = [
        Participant(
            questionnaire=opened, identifier=f"H{k}", answers=stopped, updated_at=timezone.now()
        )
        for k in range(6)
    ]
    earlier = [
        Participant(
            questionnaire=opened,
            identifier=one.identifier.lower(),
            answers={q.key: 0 for q in questions},
            updated_at=before,
            finished_at=before,
        )
        for one in people[:10]
    ]
    Participant.objects.bulk_create([*half, *earlier])


def test_both_give_the_same_weights(bob: User, opened: Questionnaire) -> None:
    people = answer_year(opened)
    leave_marks(opened, people)
    asked = cohort_from_answers(user=bob, questionnaire=opened, name="Asked")
    data = as_qualtrics(questions_of(opened.content), opened.participants.all())
    read = import_file(bob, data)
    assert read.n_students == asked.n_students == STUDENTS
    assert len(read.constraints) == 1
    levels = {tuple(q["levels"]) for q in asked.questions}
    assert {tuple(q["levels"]) for q in read.questions} == levels, "answers in the same order"
    kinds = sorted(q["kind"] for q in asked.questions)
    assert sorted(q["kind"] for q in read.questions) == kinds
    order = [one.identifier for one in people]
    np.testing.assert_allclose(scores_of(read, order), scores_of(asked, order), atol=2e-2)
