"""Step of the questionnaire: opened from a template, answered by made-up students."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.utils import timezone

from webapp.accounts.models import User
from webapp.demonstration.steps.step import Started, Step
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Question, questions_of
from webapp.surveys.services.answers import answer_save, answers_finish
from webapp.surveys.services.invitations import invitations_add
from webapp.surveys.services.questionnaires import (
    questionnaire_create,
    questionnaire_delete,
    questionnaire_open,
)
from webapp.translation.lazy import gettext_lazy as _

TITLE = "Early arrivals 2026 (generated)"
INVITED = 40
ANSWERED = 34  # of those invited
OPEN_SINCE = timedelta(days=9)
OPEN_FOR = timedelta(days=12)  # from now on
BLANK_SHARE = 0.03
_GIVEN = ("Ada", "Ben", "Cleo", "Dario", "Elif", "Finn", "Grace", "Hugo", "Iris", "Jonas")
_FAMILY = ("Brook", "Hill", "Marsh", "Stone")


def start(user: User, needs: Mapping[str, Any]) -> Started:
    """Create the questionnaire from a template, open it, and invite made-up students."""
    now = timezone.now()
    made = questionnaire_create(user=user, title=TITLE, form="housing")
    opens_at = now - OPEN_SINCE
    questionnaire_open(user=user, questionnaire=made, opens_at=opens_at, closes_at=now + OPEN_FOR)
    people = (
        f"{name.replace(' ', '.').lower()}@northfield.example, E-{number}, {name}"
        for number, name in enumerate(_names(), start=2001)
    )
    invitations_add(user=user, questionnaire=made, text="\n".join(people))
    return Started(made)


def _names() -> list[str]:
    return [f"{given} {family}" for family in _FAMILY for given in _GIVEN][:INVITED]


def answer_next(user: User, questionnaire: Questionnaire) -> bool:
    """Answer for the next student who has not finished; return True if there is none."""
    people = list(questionnaire.participants.order_by("pk")[:ANSWERED])
    waiting = [k for k, person in enumerate(people) if person.finished_at is None]
    if not waiting:
        return True
    number = waiting[0]
    person = people[number]
    person.questionnaire = questionnaire
    rng = np.random.default_rng([2026, number])
    for question in questions_of(questionnaire.content):
        if question.is_required or question.is_rule or rng.random() >= BLANK_SHARE:
            answer_save(participant=person, question=question, values=_values(question, rng))
    answers_finish(participant=person)
    _date_back(person, questionnaire.opens_at, rng)
    return len(waiting) == 1


def _values(question: Question, rng: np.random.Generator) -> list[str]:
    """Return an answer as a form sends it: the position of one of the options."""
    n_options = 2 if question.is_rule else len(question.options)
    return [str(rng.integers(n_options))]


def _date_back(person: Participant, opens_at: datetime | None, rng: np.random.Generator) -> None:
    """Spread the answers over the days since the opening, most of them early."""
    if opens_at is None:
        return
    span = timezone.now() - opens_at
    opened_at = opens_at + span * float(rng.beta(1.0, 2.5)) * 0.98
    finished_at = min(opened_at + timedelta(minutes=float(rng.uniform(3, 9))), timezone.now())
    Participant.objects.filter(pk=person.pk).update(
        opened_at=opened_at, updated_at=finished_at, finished_at=finished_at
    )


def forget(user: User, questionnaire: Questionnaire) -> None:
    """Remove a questionnaire that was not answered."""
    questionnaire_delete(user=user, questionnaire=questionnaire, typed=questionnaire.title)


QUESTIONNAIRE = Step(
    key="questionnaire",
    title=_("A questionnaire with answers"),
    doing=_("Filling in a questionnaire for 34 made-up students"),
    model=Questionnaire,
    url_name="surveys:questionnaire",
    start=start,
    discard=forget,
    finish=answer_next,
)
