"""Texts in students' own words: stored as they are saved, handled by staff, made a need."""

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.services.needs import need_add
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire, WrittenAnswer
from webapp.surveys.people import name_in_cohort
from webapp.surveys.questions import Question

MAX_NEED = 80


def written_note(*, participant: Participant, question: Question, value: Any) -> None:
    """Record that a text was written, changed or removed; staff read a changed text again.

    Call it in the transaction that stores the answer.
    """
    known = WrittenAnswer.objects.filter(participant=participant, key=question.key)
    if value is None:
        known.delete()
        return
    now = timezone.now()
    if not known.update(written_at=now, handled_at=None, handled_by=None):
        WrittenAnswer.objects.create(
            questionnaire_id=participant.questionnaire_id,
            participant=participant,
            key=question.key,
            written_at=now,
        )


@transaction.atomic
def written_handle(
    *, user: User, questionnaire: Questionnaire, keys: Collection[int], is_handled: bool
) -> int:
    """Mark texts as handled, or as open again; return how many changed."""
    rows = questionnaire.written_answers.filter(pk__in=keys, handled_at__isnull=is_handled)
    now = timezone.now() if is_handled else None
    count = rows.update(handled_at=now, handled_by=user if is_handled else None)
    if not count:
        raise QuestionnaireError(
            gettext("None of these texts is open any more.")
            if is_handled
            else gettext("None of these texts is marked as handled.")
        )
    verb = "handled texts" if is_handled else "opened texts again"
    audit(user, verb, questionnaire, texts=count)
    return count


@transaction.atomic
def written_as_need(
    *, user: User, questionnaire: Questionnaire, written: WrittenAnswer, need: str
) -> str:
    """Turn a text into a need of the student, mark it as handled, and return where it counts.

    A student who is in a cohort gets the need there at once. Another student gets it as soon as
    their answers go into a cohort.
    """
    need = checked_need(need)
    person = (
        Participant.objects.select_for_update(of=("self",))
        .select_related("cohort")
        .get(pk=written.participant_id)
    )
    written.need, written.handled_at, written.handled_by = need, timezone.now(), user
    written.save(update_fields=["need", "handled_at", "handled_by"])
    audit(user, "turned a text into a need", questionnaire)
    if person.cohort is None:
        return gettext(
            "“%(need)s” is noted. It joins the cohort together with this student's answers."
        ) % {"need": need}
    student = person.cohort.students.filter(original_id=name_in_cohort(person)).first()
    if student is None:
        raise QuestionnaireError(
            gettext("This student is not in %(cohort)s any more.") % {"cohort": person.cohort.name}
        )
    need_add(user=user, cohort=person.cohort, number=student.number, need=need)
    return gettext(
        "%(student)s of %(cohort)s needs “%(need)s” from now on. Placements whose "
        "rules count the column Needs take it into account."
    ) % {"student": student.label, "cohort": person.cohort.name, "need": need}


def checked_need(need: str) -> str:
    """Return a need as it is stored; raise QuestionnaireError for none, or more than one."""
    need = " ".join(need.split())
    if not 1 <= len(need) <= MAX_NEED:
        raise QuestionnaireError(gettext("A need has 1 to %(most)s letters.") % {"most": MAX_NEED})
    if any(sign in need for sign in ",;|"):
        raise QuestionnaireError(gettext("Give one need, without a comma, semicolon or bar."))
    return need


def needs_written(questionnaire: Questionnaire) -> dict[int, list[str]]:
    """Return the needs that staff made from texts, by the key of the participant."""
    found: dict[int, list[str]] = {}
    rows = questionnaire.written_answers.exclude(need="").order_by("pk")
    for person, need in rows.values_list("participant", "need"):
        needs = found.setdefault(person, [])
        if need.casefold() not in {known.casefold() for known in needs}:
            needs.append(need)
    return found
