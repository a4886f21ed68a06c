"""Answers that come after a cohort was made: they join it, and wait for a bed in its placements."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext, ngettext

from engine.tabular.numerals import Groups, NumberStyle
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.late_files import EMAIL, ID, NAME
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.services.latecomers import latecomers_add, latecomers_brought
from webapp.cohorts.sources import QUESTIONNAIRE
from webapp.housing.services.needs import need_add
from webapp.housing.services.requests import requests_add
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import name_in_cohort
from webapp.surveys.questions import Question, counted_answers, questions_of
from webapp.surveys.selectors.requests import requests_of
from webapp.surveys.services.cohorts import column_name, waiting_for_cohort
from webapp.surveys.services.written import needs_written

_DAY = 24 * 60
_CLOCK = re.compile(r"(\d\d):(\d\d)")


def cohorts_of(questionnaire: Questionnaire) -> list[Cohort]:
    """Return the cohorts made from a questionnaire's answers, the newest first."""
    keys = questionnaire.participants.exclude(cohort=None).values("cohort")
    found = Cohort.objects.filter(pk__in=keys, organisation_id=questionnaire.organisation_id)
    return list(found.defer("questions").order_by("-created_at"))


@dataclass(frozen=True, slots=True)
class JoinedAnswers:
    """Late answers that joined a cohort: a sentence, and the act that can be undone."""

    sentence: str
    arrivals: LateArrivals


@transaction.atomic
def late_answers_join(*, user: User, questionnaire: Questionnaire, cohort: Cohort) -> JoinedAnswers:
    """Add all people who finished since to a cohort of the questionnaire.

    Their requests are added too, and the needs that staff took from their texts. Each placement of
    the cohort puts them on its waiting list. Raises QuestionnaireError or CohortError in one
    sentence; then nobody was added.
    """
    Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)
    cohort = Cohort.objects.select_for_update().get(pk=cohort.pk)
    if not questionnaire.participants.filter(cohort=cohort).exists():
        raise QuestionnaireError(
            gettext("%(cohort)s was not made of this questionnaire's answers.")
            % {"cohort": cohort.name}
        )
    ids = cohort.students.values_list("original_id", flat=True)
    taken = {text.strip().casefold() for text in ids}
    waiting = waiting_for_cohort(questionnaire)
    people = [one for one in waiting if name_in_cohort(one).strip().casefold() not in taken]
    left_out = len(waiting) - len(people)
    if not people:
        raise QuestionnaireError(
            ngettext(
                "%(count)s student with late answers is in %(cohort)s already.",
                "%(count)s students with late answers are in %(cohort)s already.",
                left_out,
            )
            % {"count": f"{left_out:,}", "cohort": cohort.name}
            if left_out
            else gettext("Nobody has finished since %(cohort)s was made.") % {"cohort": cohort.name}
        )
    questions = questions_of(questionnaire.content)
    rows = [_row(one, questions, cohort) for one in people]
    source = f"{QUESTIONNAIRE}{questionnaire.title}"
    added = latecomers_add(user=user, cohort=cohort, rows=rows, source=source)
    Participant.objects.filter(pk__in=[one.pk for one in people]).update(cohort=cohort)
    numbers = dict(zip((one.pk for one in people), added.numbers, strict=True))
    _add_needs(user, questionnaire, cohort, numbers)
    requests = _add_requests(questionnaire, cohort, numbers)
    brought = {"participants": [one.pk for one in people], "requests": requests}
    latecomers_brought(added.arrivals, brought)
    audit(user, "added late answers", questionnaire, cohort=cohort.name, students=len(people))
    return JoinedAnswers(_joined_words(cohort, len(people), left_out), added.arrivals)


def _joined_words(cohort: Cohort, count: int, left_out: int) -> str:
    """Return how many late answers joined a cohort, and how many did not."""
    joined = ngettext(
        "%(count)s late answer joins %(cohort)s and waits for a bed in its placements.",
        "%(count)s late answers join %(cohort)s and wait for a bed in its placements.",
        count,
    ) % {"count": f"{count:,}", "cohort": cohort.name}
    if not left_out:
        return joined
    others = ngettext(
        "%(count)s other was left out: the cohort has their id already.",
        "%(count)s others were left out: the cohort has their ids already.",
        left_out,
    )
    return f"{joined} {others % {'count': f'{left_out:,}'}}"


def _row(person: Participant, questions: Sequence[Question], cohort: Cohort) -> dict[str, str]:
    """Return one person as a row of a file of late arrivals."""
    answers = counted_answers(questions, person.answers)
    row = {ID: name_in_cohort(person), EMAIL: person.email, NAME: person.name}
    levels = {question["name"]: question["levels"] for question in cohort.questions}
    for question in questions:
        value = answers.get(question.key)
        if question.is_rule:
            row[question.name] = question.in_words(value)
        elif question.is_scored:
            row |= _cells(question, value, levels)
    return row


def _cells(question: Question, value: Any, levels: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the cells of one scored question, in the words of the cohort's levels."""
    if question.kind is Kind.TIME:
        known = levels.get(question.name)  # absent if all answers had been equal
        return {question.name: _level_of(value, known)} if known and value else {}
    if question.kind is Kind.SEVERAL:
        names = {k: column_name(question, option) for k, option in enumerate(question.options)}
        _check_known(names.values(), levels)
        if value is None:
            return {}
        return {name: "Yes" if k in value else "No" for k, name in names.items()}
    _check_known([question.name], levels)
    return {question.name: "" if value is None else levels[question.name][int(value)]}


def _check_known(names: Any, levels: Mapping[str, Sequence[str]]) -> None:
    for name in names:
        if name not in levels:
            raise QuestionnaireError(
                gettext(
                    "The cohort has no question “%(question)s” any more. Make a cohort of its "
                    "own of the late answers."
                )
                % {"question": name}
            )


def _level_of(value: str, levels: Sequence[str]) -> str:
    """Return the group of a clock time among groups such as "before 22:00", "23:00 or later".

    The day begins in the middle between the last border of the groups and the first one.
    """
    found = [_CLOCK.findall(level) for level in levels]
    edges = [60 * int(hour) + int(minute) for times in found[1:] for hour, minute in times[:1]]
    unwrapped = [edges[0]]
    for before, after in itertools.pairwise(edges):
        unwrapped.append(unwrapped[-1] + (after - before) % _DAY)
    origin = (unwrapped[-1] + (unwrapped[0] + _DAY - unwrapped[-1]) // 2) % _DAY
    style = NumberStyle(is_clock=True, origin=origin)
    minutes = style.value(value)
    borders = tuple(float((edge - origin) % _DAY + origin) for edge in edges)
    groups = Groups(borders, style)
    place = 0 if minutes is None else sum(minutes >= border for border in groups.edges)
    return levels[place]


def _add_needs(
    user: User, questionnaire: Questionnaire, cohort: Cohort, numbers: Mapping[int, int]
) -> None:
    for person, needs in needs_written(questionnaire).items():
        for need in needs if person in numbers else ():
            need_add(user=user, cohort=cohort, number=numbers[person], need=need)


def _add_requests(
    questionnaire: Questionnaire, cohort: Cohort, numbers: Mapping[int, int]
) -> list[int]:
    """Add the requests of and for the new students; return their keys.

    Requests between others are stored already.
    """
    by_id = dict(cohort.students.values_list("original_id", "number"))
    pairs = []
    for asker, target, _ in requests_of(questionnaire):
        if asker.pk not in numbers and target.pk not in numbers:
            continue
        first, second = by_id.get(name_in_cohort(asker)), by_id.get(name_in_cohort(target))
        if first is None or second is None:
            continue
        if {asker.cohort_id, target.cohort_id} == {cohort.pk}:
            pairs.append((first, second))
    requests_add(cohort=cohort, source=f"{QUESTIONNAIRE}{questionnaire.title}"[:120], pairs=pairs)
    new = list(numbers.values())
    made = cohort.requests.filter(Q(student__number__in=new) | Q(target__number__in=new))
    return list(made.values_list("pk", flat=True))
