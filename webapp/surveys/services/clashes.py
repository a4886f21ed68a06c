"""Staff decisions between several sets of answers under one student number."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire, SetAside
from webapp.surveys.selectors.clashes import Clash, sorted_answers
from webapp.translation.lazy import gettext_lazy

FIRST, LATEST = "first", "latest"
NOT_CHOSEN = gettext_lazy("Choose the first or the latest answers.")
_GONE = gettext_lazy(
    "These answers are gone, or nobody else gave this number any more. Nothing was changed."
)


@transaction.atomic
def answers_choose(*, user: User, questionnaire: Questionnaire, person: int) -> list[int]:
    """Count these answers and set the others of the same number aside; return the others' people.

    Raises QuestionnaireError if there is nothing to decide, or other answers of the number are in a
    cohort: answers in a cohort are not replaced.
    """
    _lock(questionnaire)
    clash = _clash_of(questionnaire, person)
    if clash.is_in_cohort and clash.counting is not None and clash.counting.pk != person:
        raise QuestionnaireError(
            gettext(
                "Other answers of this number are in a cohort already, and a cohort keeps what it "
                "has."
            )
        )
    others = [one for one in clash.answers if one.pk != person]
    _set_aside(user, questionnaire, clash, others)
    return [one.pk for one in others]


@transaction.atomic
def answers_choose_all(*, user: User, questionnaire: Questionnaire, which: str) -> list[int]:
    """Decide all open clashes alike: the "first" or "latest" answers of each number count."""
    if which not in (FIRST, LATEST):
        raise QuestionnaireError(NOT_CHOSEN)
    _lock(questionnaire)
    aside = []
    for clash in sorted_answers(questionnaire)[1]:
        if clash.is_open:
            kept = clash.answers[0] if which == FIRST else max(clash.answers, key=_last_change)
            others = [one for one in clash.answers if one != kept]
            _set_aside(user, questionnaire, clash, others)
            aside += [one.pk for one in others]
    if not aside:
        raise QuestionnaireError(gettext("There is nothing left to decide."))
    return aside


@transaction.atomic
def answers_restore(
    *, user: User, questionnaire: Questionnaire, people: Iterable[int]
) -> Sequence[Participant]:
    """Restore answers that were set aside, beside the others; return their people."""
    _lock(questionnaire)
    found = SetAside.objects.filter(
        participant__questionnaire=questionnaire, participant__in=list(people)
    )
    rows = [one.participant for one in found.select_related("participant")]
    if not rows:
        raise QuestionnaireError(gettext("None of these answers are set aside."))
    found.delete()
    people = sorted(one.pk for one in rows)
    audit(user, "brought back answers", questionnaire, people=people, answers=len(rows))
    return rows


@transaction.atomic
def number_correct(*, user: User, questionnaire: Questionnaire, person: int, number: str) -> str:
    """Correct a mistyped student number; return the old one."""
    number = " ".join(number.split())
    if not 1 <= len(number) <= 200 or "\x00" in number:
        raise QuestionnaireError(gettext("The student number has 1 to 200 letters."))
    _lock(questionnaire)
    clash = _clash_of(questionnaire, person)
    row = next(one for one in clash.answers if one.pk == person)
    if row.cohort_id is not None:
        raise QuestionnaireError(
            gettext("These answers are in a cohort, which knows them by this number.")
        )
    if number.casefold() == clash.name.casefold():
        raise QuestionnaireError(
            gettext("%(number)s is the number that both gave. Type another one.")
            % {"number": number}
        )
    row.identifier = number
    row.save(update_fields=["identifier"])
    audit(user, "corrected a student number", questionnaire, person=row.pk)
    return clash.name


def _lock(questionnaire: Questionnaire) -> None:
    """Lock the questionnaire, as making a cohort does, so that no cohort is made meanwhile."""
    Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)


def _clash_of(questionnaire: Questionnaire, person: int) -> Clash:
    for clash in sorted_answers(questionnaire)[1]:
        if len(clash.answers) > 1 and any(one.pk == person for one in clash.answers):
            return clash
    raise QuestionnaireError(_GONE)


def _set_aside(
    user: User, questionnaire: Questionnaire, clash: Clash, others: Sequence[Participant]
) -> None:
    SetAside.objects.bulk_create(SetAside(participant=one, user=user) for one in others)
    people = sorted(one.pk for one in others)
    audit(user, "set answers aside", questionnaire, people=people, answers=len(others))


def _last_change(one: Participant) -> datetime:
    return one.updated_at or one.finished_at or one.created_at
