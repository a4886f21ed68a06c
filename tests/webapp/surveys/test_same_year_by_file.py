"""The same year twice: answered on the students' pages, and read from Qualtrics' file of it."""

import json
import random
from collections.abc import Sequence

import numpy as np
from django.utils import timezone

from engine import train_roommates
from tests.webapp.cohorts.file_writers import as_csv
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.cohorts.services.cohorts import draft_import
from webapp.cohorts.services.drafts import draft_create, draft_table, draft_update
from webapp.cohorts.tables.choices import Choices
from webapp.cohorts.tables.preview import build_preview
from webapp.cohorts.tables.review import Review, review, use_all
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Question, questions_of
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


def as_qualtrics(questions: Sequence[Question], people: Sequence[Participant]) -> bytes:
    """The file as Qualtrics exports it: three header rows, the words of the answers."""
    own = ["StartDate", "EndDate", "Finished", "ResponseId", "ExternalReference"]
    said = ["Start Date", "End Date", "Finished", "Response ID", "External Data Reference"]
    rows = [
        [*own, *(f"Q{q.number}" for q in questions)],
        [*said, *(q.text for q in questions)],
        [json.dumps({"ImportId": f"QID{k}"}) for k in range(len(own) + len(questions))],
    ]
    for k, one in enumerate(people):
        words = [q.in_words(one.answers[q.key]) for q in questions]
        time = "2026-05-01 10:00:00"
        rows.append([time, time, "True", f"R_{k * 7919:015x}", one.identifier, *words])
    return as_csv(rows, quote_all=True)


def import_file(user: User, data: bytes) -> Cohort:
    """Import as staff do who use all fixes."""
    draft = draft_create(user=user, filename="year.csv", size=len(data), read=lambda: data)
    table = draft_table(draft)

    def again(choices: Choices) -> Review:
        return review(build_preview(table, choices))

    choices = use_all(again(Choices.from_json(draft.choices)), again)
    draft = draft_update(draft=draft, choices=choices.to_json(), version=draft.version)
    return draft_import(user=user, draft=draft, name="By file", version=draft.version)


def scores_of(cohort: Cohort) -> np.ndarray:
    """What is learned from the pairs k, k + 1 of the student numbers: the score of every pair."""
    survey = cohort_survey(cohort)
    order = list(cohort.students.order_by("number").values_list("original_id", flat=True))
    position = np.array([order.index(f"N{k:04d}") for k in range(STUDENTS)])
    trained = train_roommates(
        [(survey, position.reshape(-1, 2))], ridge=100.0, solver="theta", relative_gap=1e-6
    )
    return trained.model.scores(survey)[np.ix_(position, position)]


def test_both_give_the_same_weights(bob: User, opened: Questionnaire) -> None:
    people = answer_year(opened)
    asked = cohort_from_answers(user=bob, questionnaire=opened, name="Asked")
    read = import_file(bob, as_qualtrics(questions_of(opened.content), people))
    assert read.n_students == asked.n_students == STUDENTS
    assert len(read.constraints) == 1
    levels = {tuple(q["levels"]) for q in asked.questions}
    assert {tuple(q["levels"]) for q in read.questions} == levels, "answers in the same order"
    kinds = sorted(q["kind"] for q in asked.questions)
    assert sorted(q["kind"] for q in read.questions) == kinds
    np.testing.assert_allclose(scores_of(read), scores_of(asked), atol=2e-2)
