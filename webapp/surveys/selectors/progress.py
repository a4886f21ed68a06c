"""Progress of the people of a questionnaire, and the questions where they stop."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.surveys.content import Kind
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import Question, counted_answers, questions_of


def questionnaires_of(user: User) -> QuerySet[Questionnaire]:
    """Return the organisation's questionnaires with the counts of people, newest first."""
    return owned_by(Questionnaire, user).annotate(
        n_people=Count("participants"),
        n_finished=Count("participants", filter=~Q(participants__finished_at=None)),
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the people; the counts add up to ``n_people``."""

    n_people: int
    n_finished: int
    n_started: int
    n_unopened: int
    n_opened: int
    curve: tuple[tuple[date, int], ...]
    forecast: int | None = None

    @property
    def percent(self) -> float:
        """Percentage of the people who finished."""
        return 100 * self.n_finished / self.n_people if self.n_people else 0.0


def progress_of(questionnaire: Questionnaire) -> Progress:
    """Return how many were invited, began and finished, and the curve by day."""
    is_left = Q(finished_at=None)
    counts = questionnaire.participants.aggregate(
        people=Count("pk"),
        started=Count("pk", filter=is_left & ~Q(updated_at=None)),
        unopened=Count("pk", filter=is_left & Q(updated_at=None, opened_at=None)),
    )
    finished = questionnaire.participants.exclude(finished_at=None).order_by()
    by_day = finished.values_list(TruncDate("finished_at")).annotate(Count("pk"))
    days = dict(sorted(by_day))
    n_finished = sum(days.values())
    return Progress(
        n_people=counts["people"],
        n_finished=n_finished,
        n_started=counts["started"],
        n_unopened=counts["unopened"],
        n_opened=counts["people"] - n_finished - counts["started"] - counts["unopened"],
        curve=_curve(days),
        forecast=_forecast(questionnaire, days, counts["people"]),
    )


def _forecast(questionnaire: Questionnaire, days: dict[date, int], n_people: int) -> int | None:
    """Return how many will have finished at closing, from the rate of the last three days.

    Reminders and last days, which bring more, are not considered. None if there is no forecast.
    """
    n_finished = sum(days.values())
    if not questionnaire.is_open or questionnaire.closes_at is None or n_finished < 10:
        return None
    today = timezone.localdate()
    behind = sum(n for day, n in days.items() if today - timedelta(days=3) <= day < today)
    if min(days) >= today - timedelta(days=2):
        return None  # fewer than three whole days
    left = (timezone.localtime(questionnaire.closes_at).date() - today).days
    return min(n_people, n_finished + round(behind / 3 * left))


def _curve(days: dict[date, int]) -> tuple[tuple[date, int], ...]:
    if not days:
        return ()
    total, day = 0, min(days)
    curve = [(day - timedelta(days=1), 0)]
    while day <= max(days):
        total += days.get(day, 0)
        curve.append((day, total))
        day += timedelta(days=1)
    return tuple(curve)


@dataclass(frozen=True, slots=True)
class QuestionState:
    """One question with its answers so far.

    ``counts`` belong to its options; ``n_stopped`` people answered it last and did not finish.
    """

    question: Question
    n_answered: int
    n_blank: int
    n_stopped: int
    counts: tuple[tuple[str, int], ...]
    section: int


def question_states(questionnaire: Questionnaire) -> list[QuestionState]:
    """Return every question with its answers and the number of people who stopped there."""
    questions = questions_of(questionnaire.content)
    rows = []
    stopped: Counter[str] = Counter()
    is_left = ExpressionWrapper(Q(finished_at=None), output_field=BooleanField())
    people = questionnaire.participants.annotate(is_left=is_left)
    for answers, is_unfinished in people.values_list("answers", "is_left"):
        counted = counted_answers(questions, answers)
        rows.append(counted)
        if counted and is_unfinished:
            stopped[next(reversed(counted))] += 1
    sections = questionnaire.content.sections
    places = [place for place, section in enumerate(sections) for _ in section.questions]
    return [
        _state(question, rows, stopped[question.key], place)
        for question, place in zip(questions, places, strict=True)
    ]


def _state(
    question: Question, rows: Sequence[dict[str, Any]], n_stopped: int, section: int
) -> QuestionState:
    values = [answers[question.key] for answers in rows if question.key in answers]
    given = [value for value in values if value is not None]
    chosen: Counter[int] = Counter()
    if question.kind is Kind.SEVERAL:
        chosen.update(chain.from_iterable(given))
    elif question.options:
        chosen.update(given)
    counts = tuple((option, chosen[k]) for k, option in enumerate(question.options))
    return QuestionState(question, len(given), len(values) - len(given), n_stopped, counts, section)
