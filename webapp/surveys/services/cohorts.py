"""From answers to a cohort, with one button; pressed again, for who answered since."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import FIRST_NUMBER, Cohort, Student
from webapp.cohorts.services.cohorts import check_name
from webapp.cohorts.tables.numerals import NumberStyle, number_style, suggest_groups
from webapp.housing.services.requests import requests_add
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import name_in_cohort, person_key
from webapp.surveys.questions import Kind, Question, QuestionnaireError, questions_of
from webapp.surveys.selectors import requests_of

_MIN = 2
SOURCE = "Questionnaire "  # how requests say where they come from, before the title


def waiting_for_cohort(questionnaire: Questionnaire) -> list[Participant]:
    """Return who finished and is in no cohort yet: the latest answer of each person.

    Somebody who began twice by the code, or was invited and began by the code as well, is one
    person if they gave the same student number or e-mail. Anybody can type the number of another
    where a code is enough: a personal link or a sign-in counts before it, however late it comes.
    """
    finished = sorted(
        questionnaire.participants.exclude(finished_at=None),
        key=lambda one: (one.is_known, one.updated_at or one.finished_at),
    )
    taken = {person_key(one) for one in finished if one.cohort_id is not None}
    latest = {person_key(one): one for one in finished if one.cohort_id is None}
    return sorted(
        (one for person, one in latest.items() if person not in taken), key=lambda one: one.pk
    )


def cohort_from_answers(*, user: User, questionnaire: Questionnaire, name: str) -> Cohort:
    """Make a cohort of all who finished since the last one.

    Raises CohortError or QuestionnaireError in one sentence; nothing was made then.
    """
    name = check_name(name)
    try:
        with transaction.atomic():
            Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)
            people = waiting_for_cohort(questionnaire)
            if len(people) < _MIN:
                raise QuestionnaireError("At least 2 people have to finish before it is a cohort.")
            cohort = _create(user, questionnaire, name, people)
            Participant.objects.filter(pk__in=[one.pk for one in people]).update(cohort=cohort)
            number = {one.pk: FIRST_NUMBER + k for k, one in enumerate(people)}
            requests_add(
                cohort=cohort,
                source=f"{SOURCE}{questionnaire.title}"[:120],
                pairs=[
                    (number[asker.pk], number[target.pk])
                    for asker, target, _ in requests_of(questionnaire)
                    if asker.pk in number and target.pk in number
                ],
            )
            audit(user, "made a cohort", questionnaire, cohort=name, students=len(people))
    except IntegrityError as error:
        raise QuestionnaireError(f"There is already a cohort called “{name}”.") from error
    return cohort


def codes_of(cohort: Cohort) -> dict[str, str]:
    """Return the original id of every student of a cohort who answered, by their code."""
    return {
        one.code: one.identifier or one.email or one.code
        for one in Participant.objects.filter(cohort=cohort).only("code", "identifier", "email")
    }


def _create(
    user: User, questionnaire: Questionnaire, name: str, people: Sequence[Participant]
) -> Cohort:
    questions = questions_of(questionnaire.content)
    columns = [
        column
        for question in questions
        if question.is_scored
        for column in _columns(question, people)
    ]
    rules = [question for question in questions if question.is_rule]
    cohort = Cohort.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=name,
        filename=questionnaire.title,
        questions=[column for column, _ in columns],
        constraints=[question.name for question in rules],
        n_students=len(people),
    )
    Student.objects.bulk_create(
        [
            Student(
                cohort=cohort,
                number=FIRST_NUMBER + k,
                original_id=name_in_cohort(one),
                email=one.email,
                answers=[codes[k] for _, codes in columns],
                attributes={q.name: q.in_words(one.answers.get(q.key)) for q in rules},
            )
            for k, one in enumerate(people)
        ],
        batch_size=500,
    )
    return cohort


def _columns(
    question: Question, people: Sequence[Participant]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Return the columns of one question: [(stored question, position of each answer or -1)]."""
    values = [one.answers.get(question.key) for one in people]
    if question.kind is Kind.SEVERAL:
        return [
            (
                _stored(f"{question.name}: {option}"[:60], "binary", ("No", "Yes"), question),
                [-1 if value is None else int(k in value) for value in values],
            )
            for k, option in enumerate(question.options)
        ]
    if question.kind is Kind.TIME:
        return _times(question, values)
    kind = "nominal" if question.kind is Kind.ONE else "ordinal"
    kind = "binary" if len(question.options) == 2 else kind
    codes = [-1 if value is None else int(value) for value in values]
    return [(_stored(question.name, kind, question.options, question), codes)]


def _times(question: Question, values: Sequence[Any]) -> list[tuple[dict[str, Any], list[int]]]:
    said = [value for value in values if value]
    style = number_style(said) or NumberStyle(is_clock=True)
    groups = suggest_groups(said, style)
    if groups is None:
        return []  # all said the same, or nobody anything
    levels = groups.levels
    codes = [levels.index(groups.level_of(value)) if value else -1 for value in values]
    kind = "binary" if len(levels) == 2 else "ordinal"
    return [(_stored(question.name, kind, levels, question), codes)]


def _stored(name: str, kind: str, levels: Sequence[str], question: Question) -> dict[str, Any]:
    return {"name": name, "kind": kind, "levels": list(levels), "wording": question.text}
