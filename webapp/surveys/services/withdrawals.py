"""Withdrawal of answers by students, here and in the cohorts with a copy of them.

A cohort keeps the student's row and room, since a published room stays until staff unlock it. The
student's data are blanked: every scored answer, requests and the name. The rule columns and the
e-mail, on which a published bed was based and announced, stay while a published placement houses
the student; staff see what was kept and delete it with one button.
"""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.cohorts import halves_within
from webapp.cohorts.sources import QUESTIONNAIRE
from webapp.housing.models import Place, RoommateRequest
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import DELETED_THE_REST, name_in_cohort
from webapp.surveys.questions import questions_of
from webapp.surveys.services.answers import locked_participant

BLANK = -1


@transaction.atomic
def answers_withdraw(*, participant: Participant) -> bool:
    """Delete a participant's answers for good; return True if a cohort had a copy of them.

    The questionnaire is locked first, as it is while a cohort is made: if both happen at once,
    either the cohort never gets the answers or its copy is blanked as well.
    """
    questionnaire = Questionnaire.objects.select_for_update().get(pk=participant.questionnaire_id)
    known = Participant.objects.filter(pk=participant.pk).values_list("cohort", flat=True).first()
    locked = Cohort.objects.select_for_update()
    cohort = locked.filter(pk=known).first() if known is not None else None
    found = locked_participant(participant)
    details = {} if cohort is None else _taken_out(questionnaire, cohort, name_in_cohort(found))
    audit(
        None,
        "withdrew",
        questionnaire,
        organisation=questionnaire.organisation,
        was_in_a_cohort=cohort is not None,
        **details,
    )
    found.delete()
    return cohort is not None


def _taken_out(questionnaire: Questionnaire, cohort: Cohort, known: str) -> dict[str, Any]:
    """Blank the copies in a cohort and its halves; return the details of the audit line."""
    student = cohort.students.filter(original_id=known).first()
    details: dict[str, Any] = {"cohort": cohort.name}
    if student is None:
        return details
    copies = _copies(cohort, student.number)
    columns = _rule_columns(questionnaire)
    is_housed = Place.objects.filter(
        student__in=copies, room__isnull=False, placement__published_at__isnull=False
    ).exists()
    for copy in copies:
        copy.answers = [BLANK] * len(copy.answers)
        copy.name = copy.preferred = copy.pronouns = ""
        if not is_housed:
            _clear_rules(copy, columns)
    _save(copies)
    RoommateRequest.objects.filter(student__in=copies, source__startswith=QUESTIONNAIRE).delete()
    kept = _said(student, columns) if is_housed else []
    return details | {"student": student.label, "kept": kept, "cohort_id": str(cohort.pk)}


@transaction.atomic
def withdrawal_complete(*, user: User, questionnaire: Questionnaire, line: int) -> str:
    """Delete the data kept for a published bed after a student withdrew their answers.

    ``line`` is the audit line of the withdrawal. Returns the student's label. Raises
    QuestionnaireError if there is no such line, or nothing is left to delete.
    """
    said = AuditLine.objects.filter(
        pk=line,
        organisation_id=questionnaire.organisation_id,
        verb="withdrew",
        target_id=str(questionnaire.pk),
    ).first()
    details = said.details if said else {}
    locked = Cohort.objects.select_for_update().filter(organisation=questionnaire.organisation_id)
    cohort_id = details.get("cohort_id")
    cohort = locked.filter(pk=cohort_id).first() if cohort_id is not None else None
    number = int(str(details.get("student", "S-0")).removeprefix("S-"))
    copies = [] if cohort is None else _copies(cohort, number)
    columns = _rule_columns(questionnaire)
    if not copies or not any(_said(copy, columns) for copy in copies):
        raise QuestionnaireError(gettext("Nothing of it is left to delete."))
    for copy in copies:
        _clear_rules(copy, columns)
    _save(copies)
    label = copies[0].label
    audit(user, DELETED_THE_REST, questionnaire, student=label, cohort=details["cohort"])
    return label


def _copies(cohort: Cohort, number: int) -> list[Student]:
    """Return one student's rows in a cohort and its halves, which have the same numbers."""
    cohorts = [cohort, *halves_within(cohort)]
    return list(Student.objects.filter(cohort__in=cohorts, number=number).order_by("pk"))


def _rule_columns(questionnaire: Questionnaire) -> list[str]:
    return [q.name for q in questions_of(questionnaire.content) if q.is_rule]


def _clear_rules(student: Student, columns: Iterable[str]) -> None:
    student.email = ""
    student.attributes |= {name: "" for name in columns if name in student.attributes}


def _said(student: Student, columns: Iterable[str]) -> list[str]:
    """Return the data still stored: names of rule columns, and "e-mail"."""
    kept = [name for name in columns if student.attributes.get(name)]
    return kept + (["e-mail"] if student.email else [])


def _save(copies: list[Student]) -> None:
    for copy in copies:
        copy.save(update_fields=["answers", "attributes", "email", "name", "preferred", "pronouns"])
    Cohort.objects.filter(pk__in={copy.cohort_id for copy in copies}).update(
        revision=F("revision") + 1, updated_at=timezone.now()
    )
