"""Making a cohort from answers; a repeated run takes people who finished since."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext

from engine.tabular.numerals import NumberStyle, number_style, suggest_groups
from engine.tabular.rule_columns import NEED, rule_of
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.services.cohorts import check_name
from webapp.cohorts.services.numbers import numbers_take
from webapp.cohorts.sources import QUESTIONNAIRE
from webapp.housing.services.needs import NEEDS_COLUMN
from webapp.housing.services.requests import requests_add
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import name_in_cohort
from webapp.surveys.questions import Question, counted_answers, questions_of
from webapp.surveys.selectors.clashes import sorted_answers, undecided_words
from webapp.surveys.selectors.requests import requests_of
from webapp.surveys.services.written import needs_written

_MIN = 2


def waiting_for_cohort(questionnaire: Questionnaire) -> list[Participant]:
    """Return people who finished and are in no cohort yet, without those with an open decision.

    See :mod:`webapp.surveys.selectors.clashes`.
    """
    keys = sorted_answers(questionnaire)[0]
    people = questionnaire.participants.in_bulk(keys)
    return [people[key] for key in keys]


def cohort_from_answers(*, user: User, questionnaire: Questionnaire, name: str) -> Cohort:
    """Create a cohort of all people who finished since the last one.

    Raises CohortError or QuestionnaireError in one sentence; then nothing was created.
    """
    name = check_name(name)
    try:
        with transaction.atomic():
            Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)
            people = waiting_for_cohort(questionnaire)
            if len(people) < _MIN:
                waits = undecided_words(questionnaire)
                words = gettext("At least 2 people have to finish to make a cohort.")
                raise QuestionnaireError(f"{words} {waits}".strip())
            first = numbers_take(user.own_organisation, len(people))
            cohort = _create(user, questionnaire, name, people, first)
            Participant.objects.filter(pk__in=[one.pk for one in people]).update(cohort=cohort)
            number = {one.pk: first + k for k, one in enumerate(people)}
            requests_add(
                cohort=cohort,
                source=f"{QUESTIONNAIRE}{questionnaire.title}"[:120],
                pairs=[
                    (number[asker.pk], number[target.pk])
                    for asker, target, _ in requests_of(questionnaire)
                    if asker.pk in number and target.pk in number
                ],
            )
            audit(user, "made a cohort", questionnaire, cohort=name, students=len(people))
    except IntegrityError as error:
        raise QuestionnaireError(
            gettext("There is already a cohort called “%(name)s”.") % {"name": name}
        ) from error
    return cohort


def codes_of(cohort: Cohort) -> dict[str, str]:
    """Return the original id by code of every student of a cohort who answered."""
    return {
        one.code: one.identifier or one.email or one.code
        for one in Participant.objects.filter(cohort=cohort).only("code", "identifier", "email")
    }


def _create(
    user: User, questionnaire: Questionnaire, name: str, people: Sequence[Participant], first: int
) -> Cohort:
    questions = questions_of(questionnaire.content)
    for one in people:  # answers to questions no longer shown do not count
        one.answers = counted_answers(questions, one.answers)
    columns = [
        column
        for question in questions
        if question.is_scored
        for column in _columns(question, people)
    ]
    rules = [question for question in questions if question.is_rule]
    needs = {k: n for k, n in needs_written(questionnaire).items() if k in {p.pk for p in people}}
    cohort = Cohort.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=name,
        filename=questionnaire.title,
        questions=[column for column, _ in columns],
        constraints=[*(q.name for q in rules), *([NEEDS_COLUMN] if needs else [])],
        needs=[
            *(q.name for q in rules if _is_need(q, people)),
            *([NEEDS_COLUMN] if needs else []),
        ],
        n_students=len(people),
    )
    Student.objects.bulk_create(
        [
            Student(
                cohort=cohort,
                number=first + k,
                original_id=name_in_cohort(one),
                email=one.email,
                answers=[codes[k] for _, codes in columns],
                attributes={q.name: q.in_words(one.answers.get(q.key)) for q in rules}
                | ({NEEDS_COLUMN: ", ".join(needs.get(one.pk, ()))} if needs else {}),
                name=one.name,
            )
            for k, one in enumerate(people)
        ],
        batch_size=500,
    )
    return cohort


def _is_need(question: Question, people: Sequence[Participant]) -> bool:
    """Return True if a rule question is about a need that a room meets, as in files."""
    answers = Counter(question.in_words(one.answers.get(question.key)) for one in people)
    del answers[""]
    return rule_of(question.name, question.text, answers) == NEED


def column_name(question: Question, option: str) -> str:
    """Return the name of the column for one option of a question with several answers."""
    return f"{question.name}: {option}"[:60]


def _columns(
    question: Question, people: Sequence[Participant]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Return a question's columns: [(stored question, position of each answer or -1)]."""
    values = [one.answers.get(question.key) for one in people]
    if question.kind is Kind.SEVERAL:
        return [
            (
                _stored(column_name(question, option), "binary", ("No", "Yes"), question),
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
        return []  # all answers are equal, or all are blank
    levels = groups.levels
    codes = [levels.index(groups.level_of(value)) if value else -1 for value in values]
    kind = "binary" if len(levels) == 2 else "ordinal"
    return [(_stored(question.name, kind, levels, question), codes)]


def _stored(name: str, kind: str, levels: Sequence[str], question: Question) -> dict[str, Any]:
    return {"name": name, "kind": kind, "levels": list(levels), "wording": question.text}
