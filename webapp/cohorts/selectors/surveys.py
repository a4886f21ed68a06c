"""Cohorts as the engine's surveys, read by another questionnaire if one is given."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from engine import InvalidProblemError, Question, Questionnaire, Survey
from engine.crf.questionnaire import QuestionKind
from webapp.cohorts.models import Cohort, Student

KEPT_SURVEYS = 16  # about 2 MB each at 10,000 students


def questionnaire_of(questions: Sequence[dict[str, Any]]) -> Questionnaire:
    """Return stored questions as a questionnaire."""
    return Questionnaire(
        tuple(Question(q["name"], q["kind"], tuple(q["levels"])) for q in questions)
    )


def cohort_survey(cohort: Cohort, questionnaire: Questionnaire | None = None) -> Survey:
    """Return the answers of a cohort in the order of the students' numbers.

    With a questionnaire, answers are read by the text of its levels, in its order of questions. A
    process caches the last surveys by the cohort's revision.

    Raises
    ------
    InvalidProblemError
        If a question is missing, or a student's answer is not in the questionnaire.
    """
    own = _read(*_key_of(cohort)).survey
    if questionnaire is None or questionnaire == own.questionnaire:
        return own
    return _recoded(*_key_of(cohort), questionnaire)


def cohort_positions(cohort: Cohort) -> Mapping[int, int]:
    """Return the position in the survey of every number on screen."""
    return _read(*_key_of(cohort)).positions


def rule_value_counts(cohort: Cohort) -> dict[str, Counter[str]]:
    """Return how many students have each value of each rule column; cached like answers."""
    return _counted(cohort.pk, cohort.revision, tuple(cohort.constraints))


def forget_surveys() -> None:
    """Delete the answers cached in this process; call it when a cohort is purged."""
    _read.cache_clear()
    _recoded.cache_clear()
    _counted.cache_clear()


@dataclass(frozen=True, slots=True)
class _Answers:
    survey: Survey
    positions: Mapping[int, int]


def _key_of(cohort: Cohort) -> tuple[UUID, int, Questionnaire, tuple[str, ...]]:
    questionnaire = questionnaire_of(cohort.questions)
    return cohort.pk, cohort.revision, questionnaire, tuple(cohort.constraints)


@lru_cache(maxsize=KEPT_SURVEYS)
def _read(
    cohort_pk: UUID, revision: int, questionnaire: Questionnaire, columns: tuple[str, ...]
) -> _Answers:
    """Read the answers; ``revision`` is only part of the cache key."""
    students = Student.objects.filter(cohort=cohort_pk).order_by("number")
    rows = list(students.values_list("number", "answers", "attributes"))
    shape = (len(rows), questionnaire.n_questions)
    answers = np.array([row[1] for row in rows], dtype=np.int16).reshape(shape)
    labels = tuple(f"S-{row[0]}" for row in rows)
    attributes = {name: tuple(row[2].get(name, "") for row in rows) for name in columns}
    positions = {row[0]: k for k, row in enumerate(rows)}
    survey = Survey(labels, questionnaire, answers, attributes)
    return _Answers(survey, MappingProxyType(positions))


@lru_cache(maxsize=KEPT_SURVEYS)
def _counted(cohort_pk: UUID, revision: int, columns: tuple[str, ...]) -> dict[str, Counter[str]]:
    students = Student.objects.filter(cohort=cohort_pk) if columns else Student.objects.none()
    # Counted by the database: thousands of students have few combinations of values.
    combinations = students.order_by().values_list("attributes").annotate(Count("pk"))
    counts: dict[str, Counter[str]] = {name: Counter() for name in columns}
    for attributes, number in combinations:
        for name in columns:
            counts[name][attributes.get(name, "")] += number
    return counts


@lru_cache(maxsize=KEPT_SURVEYS)
def _recoded(
    cohort_pk: UUID,
    revision: int,
    questionnaire: Questionnaire,
    columns: tuple[str, ...],
    wanted: Questionnaire,
) -> Survey:
    own = _read(cohort_pk, revision, questionnaire, columns).survey
    answers = _recode(own.answers, questionnaire, wanted, own.ids)
    return Survey(own.ids, wanted, answers, own.attributes)


def _recode(
    answers: np.ndarray, own: Questionnaire, wanted: Questionnaire, labels: tuple[str, ...]
) -> np.ndarray:
    position = {question.name: k for k, question in enumerate(own.questions)}
    missing = [question.name for question in wanted.questions if question.name not in position]
    if missing:
        raise InvalidProblemError(
            ngettext(
                "This model was learned from other questions: %(questions)s is missing.",
                "This model was learned from other questions: %(questions)s are missing.",
                len(missing),
            )
            % {"questions": _listed(missing)}
        )
    columns = []
    for question in wanted.questions:
        column = answers[:, position[question.name]]
        codes = {level: code for code, level in enumerate(question.levels)}
        levels = own.questions[position[question.name]].levels
        table = np.array([*(codes.get(level, -2) for level in levels), -1], dtype=np.int16)
        recoded = table[column]  # -1, a blank, selects the last entry
        if (recoded == -2).any():
            row = int(np.argmax(recoded == -2))
            raise InvalidProblemError(
                _(
                    "%(student)s, %(question)s: “%(answer)s” was never among the answers that "
                    "the model was learned from."
                )
                % {"student": labels[row], "question": question.name, "answer": levels[column[row]]}
            )
        columns.append(recoded)
    return np.stack(columns, axis=1)


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return _("%(names)s and %(more)s more") % {
        "names": ", ".join(names[:2]),
        "more": len(names) - 2,
    }


def cohort_pairs(cohort: Cohort) -> NDArray[np.int64]:
    """Return the past pairs as positions in the order of the numbers, shape (p, 2)."""
    keys = list(cohort.students.values_list("pk", flat=True))
    position = {key: k for k, key in enumerate(keys)}
    pairs = cohort.past_pairs.values_list("first_id", "second_id")
    return np.array([(position[a], position[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)


def cohort_rooms(cohort: Cohort) -> NDArray[np.int64]:
    """Return the past room of every student in the order of the numbers, -1 for none, shape (n,).

    Rooms are numbered from 0 in the order in which they were imported.
    """
    rooms = list(cohort.students.values_list("past_room", flat=True))
    number = {key: k for k, key in enumerate(sorted({room for room in rooms if room is not None}))}
    return np.array([number.get(room, -1) for room in rooms], dtype=np.int64)


def cohort_choices(cohort: Cohort) -> NDArray[np.int64]:
    """Return the training data: the past rooms if a roster gave them, else the past pairs."""
    return cohort_rooms(cohort) if cohort.n_rooms else cohort_pairs(cohort)


def common_questionnaire(cohorts: Sequence[Cohort]) -> Questionnaire:
    """Return the questions that all cohorts share, with the answers of all of them in order.

    Raises
    ------
    InvalidProblemError
        If no question is shared, or a shared one has another kind or a contradicting order.
    """
    first, *others = (questionnaire_of(cohort.questions) for cohort in cohorts)
    merged = {question.name: question for question in first.questions}
    for cohort, questionnaire in zip(cohorts[1:], others, strict=True):
        theirs = {question.name: question for question in questionnaire.questions}
        merged = {
            name: _merge(question, theirs[name], cohort.name)
            for name, question in merged.items()
            if name in theirs
        }
    if not merged:
        raise InvalidProblemError(_("These cohorts share no question, so nothing can be learned."))
    return Questionnaire(tuple(merged.values()))


def _merge(one: Question, other: Question, where: str) -> Question:
    if one.levels == other.levels and one.kind == other.kind:
        return one
    kinds = {one.kind, other.kind}
    if "nominal" in kinds and len(kinds) > 1:
        raise InvalidProblemError(
            _(
                "%(name)s is %(kind)s in one cohort and %(other)s in %(where)s. Import one "
                "of them again."
            )
            % {"name": one.name, "kind": one.kind, "other": other.kind, "where": where}
        )
    levels = _merged_levels(one.levels, other.levels)
    if levels is None:
        raise InvalidProblemError(
            _(
                "%(name)s: the answers of %(where)s stand in another order. Import one of "
                "them again."
            )
            % {"name": one.name, "where": where}
        )
    kind: QuestionKind = "binary" if len(levels) == 2 else "ordinal"
    if kinds == {"nominal"}:
        kind = "nominal"
    return Question(one.name, kind, levels)


def _merged_levels(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """Merge two orders that agree on their common levels; None if they contradict each other."""
    try:
        return tuple(sorted(set(one) | set(other), key=float))
    except ValueError:
        pass
    shared = [level for level in one if level in other]
    if shared != [level for level in other if level in one]:
        return None
    merged: list[str] = []
    rest = list(other)
    for level in one:
        if level in rest:
            cut = rest.index(level) + 1
            merged += rest[:cut]
            rest = rest[cut:]
        else:
            merged.append(level)
    return tuple(merged + rest)
