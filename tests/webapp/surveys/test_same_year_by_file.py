"""The same year twice: answered on the students' pages, and read from Qualtrics' file of it."""

import random
from datetime import timedelta

import numpy as np
from django.utils import timezone

from tests.webapp.surveys.same_year import as_qualtrics, import_file, scores_of
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.clashes import answers_choose_all
from webapp.surveys.services.cohorts import cohort_from_answers

STUDENTS = 36
ALONE = ((3, 0, 3), (10, 9, 2))  # student, question, answer that nobody else gives


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
        for who, number, answer in ALONE:
            key = questions[number].key
            if k == who or said[key] == answer:
                said[key] = answer if k == who else answer + 1
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
    assert len(answers_choose_all(user=bob, questionnaire=opened, which="latest")) == 10
    asked = cohort_from_answers(user=bob, questionnaire=opened, name="Asked")
    data = as_qualtrics(questions_of(opened.content), opened.participants.all())
    read = import_file(bob, data)
    assert read.n_students == asked.n_students == STUDENTS
    assert len(read.constraints) == 1
    levels = {tuple(q["levels"]) for q in asked.questions}
    assert {tuple(q["levels"]) for q in read.questions} == levels, "answers in the same order"
    kinds = sorted(q["kind"] for q in asked.questions)
    assert sorted(q["kind"] for q in read.questions) == kinds
    for number in (0, 9):  # an answer of one person is an answer, and no slip
        wording = questions_of(opened.content)[number].text
        assert [q["levels"] for q in read.questions if q["wording"] == wording] == [
            q["levels"] for q in asked.questions if q["wording"] == wording
        ]
    assert answers_in(read) == answers_in(asked)
    order = [one.identifier for one in people]
    np.testing.assert_allclose(scores_of(read, order), scores_of(asked, order), atol=1e-6)


def answers_in(cohort: Cohort) -> dict[str, dict[str, str]]:
    """Every answer in words, by person and question as asked."""
    return {
        student.original_id: {
            question["wording"]: question["levels"][code] if code >= 0 else ""
            for question, code in zip(cohort.questions, student.answers, strict=True)
        }
        | student.attributes
        for student in cohort.students.all()
    }
