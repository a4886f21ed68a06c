"""What pages of questionnaires show: counts, the curve of answers, where people stop."""

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Kind, Question, questions_of


def questionnaires_of(user: User) -> QuerySet[Questionnaire]:
    """Return the organisation's questionnaires with the counts of people, newest first."""
    return owned_by(Questionnaire, user).annotate(
        n_people=Count("participants"),
        n_finished=Count("participants", filter=~Q(participants__finished_at=None)),
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far people are; the counts add up to ``n_people``."""

    n_people: int
    n_finished: int
    n_started: int
    n_unopened: int
    n_opened: int
    curve: tuple[tuple[date, int], ...]
    forecast: int | None = None

    @property
    def percent(self) -> float:
        """Share of the people who finished."""
        return 100 * self.n_finished / self.n_people if self.n_people else 0.0


def progress_of(questionnaire: Questionnaire) -> Progress:
    """Return how many were invited, began and finished, and the curve of the days."""
    rows = list(questionnaire.participants.values_list("opened_at", "updated_at", "finished_at"))
    finished = sorted(timezone.localtime(done).date() for _, _, done in rows if done)
    n_started = sum(bool(changed) and not done for _, changed, done in rows)
    n_unopened = sum(not opened and not changed and not done for opened, changed, done in rows)
    n_opened = len(rows) - len(finished) - n_started - n_unopened
    curve = _curve(finished)
    forecast = _forecast(questionnaire, finished, len(rows))
    return Progress(len(rows), len(finished), n_started, n_unopened, n_opened, curve, forecast)


def _forecast(questionnaire: Questionnaire, finished: list[date], n_people: int) -> int | None:
    """Return how many will have finished at closing if each day brings what the last three did.

    It knows nothing of reminders and of last days, which bring more; None where it says nothing.
    """
    if not questionnaire.is_open or questionnaire.closes_at is None or len(finished) < 10:
        return None
    today = timezone.localdate()
    behind = [day for day in finished if today - timedelta(days=3) <= day < today]
    if finished[0] >= today - timedelta(days=2):
        return None  # fewer than three whole days
    left = (timezone.localtime(questionnaire.closes_at).date() - today).days
    return min(n_people, len(finished) + round(len(behind) / 3 * left))


def _curve(days: list[date]) -> tuple[tuple[date, int], ...]:
    if not days:
        return ()
    times = Counter(days)
    total, day = 0, days[0]
    curve = [(day - timedelta(days=1), 0)]
    while day <= days[-1]:
        total += times[day]
        curve.append((day, total))
        day += timedelta(days=1)
    return tuple(curve)


@dataclass(frozen=True, slots=True)
class QuestionState:
    """One question with what was answered so far.

    ``counts`` belong to its options; ``n_stopped`` people answered it last and did not finish.
    """

    question: Question
    n_answered: int
    n_blank: int
    n_stopped: int
    counts: tuple[tuple[str, int], ...]
    section: int


def question_states(questionnaire: Questionnaire) -> list[QuestionState]:
    """Return every question with its answers and how many stopped there."""
    questions = questions_of(questionnaire.content)
    rows = list(questionnaire.participants.values_list("answers", "finished_at"))
    stopped: Counter[str] = Counter()
    for answers, finished in rows:
        given = [question.key for question in questions if question.key in answers]
        if given and not finished:
            stopped[given[-1]] += 1
    given_answers = [answers for answers, _ in rows]
    section_of = {
        data["key"]: k
        for k, section in enumerate(questionnaire.content["sections"])
        for data in section["questions"]
    }
    return [
        _state(question, given_answers, stopped, section_of[question.key]) for question in questions
    ]


def _state(
    question: Question, rows: list[dict[str, Any]], stopped: Counter[str], section: int
) -> QuestionState:
    values = [answers[question.key] for answers in rows if question.key in answers]
    given = [value for value in values if value is not None]
    times: Counter[int] = Counter()
    if question.options:
        for value in given:
            times.update(value if isinstance(value, list) else [value])
    counts = tuple((option, times[k]) for k, option in enumerate(question.options))
    return QuestionState(
        question, len(given), len(values) - len(given), stopped[question.key], counts, section
    )


def requests_of(questionnaire: Questionnaire) -> list[tuple[Participant, Participant, bool]]:
    """Return [(who asks, whom, whether both do)] for codes that somebody else has."""
    keys = [q.key for q in questions_of(questionnaire.content) if q.kind is Kind.REQUEST]
    people = list(questionnaire.participants.all())
    by_code = {one.code: one for one in people}
    wants: dict[int, set[int]] = {}
    for one in people:
        codes = {one.answers.get(key) for key in keys}
        found = {by_code[code].pk for code in codes if code in by_code}
        wants[one.pk] = found - {one.pk}
    by_key = {one.pk: one for one in people}
    return [
        (by_key[asks], by_key[whom], asks in wants.get(whom, set()))
        for asks, found in wants.items()
        for whom in sorted(found)
    ]
