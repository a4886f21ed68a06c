"""Students take their answers back: here at once, and out of the cohorts that have a copy of them.

A cohort keeps who was there and where they live, for a room that was published stays until staff
unlock it. What somebody said is blanked: every scored answer, whom they asked for, and their name.
The rule columns and the e-mail, by which a published bed was given and told, stay while a
published placement houses them; staff see what was kept and delete it with one button.
"""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.cohorts import halves_within
from webapp.housing.models import Place, RoommateRequest
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import DELETED_THE_REST, name_in_cohort
from webapp.surveys.questions import QuestionnaireError, questions_of
from webapp.surveys.services.answers import locked_participant
from webapp.surveys.services.cohorts import SOURCE

BLANK = -1


@transaction.atomic
def answers_withdraw(*, participant: Participant) -> bool:
    """Delete somebody's own answers for good; return whether a cohort had a copy of them.

    The questionnaire is locked first, as it is while a cohort is made: of the two that come at
    once, either the cohort never sees the answers or its copy goes as well.
    """
    questionnaire = Questionnaire.objects.select_for_update().get(pk=participant.questionnaire_id)
    known = Participant.objects.filter(pk=participant.pk).values_list("cohort", flat=True).first()
    cohort = Cohort.objects.select_for_update().filter(pk=known).first()
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
    """Blank the copies in a cohort and its halves; return what the audit line says of it."""
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
        copy.name = ""
        if not is_housed:
            _clear_rules(copy, columns)
    _save(copies)
    RoommateRequest.objects.filter(student__in=copies, source__startswith=SOURCE).delete()
    kept = _said(student, columns) if is_housed else []
    return details | {"student": student.label, "kept": kept, "cohort_id": str(cohort.pk)}


@transaction.atomic
def withdrawal_complete(*, user: User, questionnaire: Questionnaire, line: int) -> str:
    """Delete what a published bed needed of somebody who took their answers back.

    ``line`` is the audit line of the withdrawal. Returns the student's label. Raises
    QuestionnaireError where there is no such line, or nothing of it is left.
    """
    said = AuditLine.objects.filter(
        pk=line,
        organisation_id=questionnaire.organisation_id,
        verb="withdrew",
        target_id=str(questionnaire.pk),
    ).first()
    details = said.details if said else {}
    cohort = (
        Cohort.objects.select_for_update()
        .filter(pk=details.get("cohort_id"), organisation_id=questionnaire.organisation_id)
        .first()
    )
    number = int(str(details.get("student", "S-0")).removeprefix("S-"))
    copies = [] if cohort is None else _copies(cohort, number)
    columns = _rule_columns(questionnaire)
    if not copies or not any(_said(copy, columns) for copy in copies):
        raise QuestionnaireError("Nothing of it is left to delete.")
    for copy in copies:
        _clear_rules(copy, columns)
    _save(copies)
    label = copies[0].label
    audit(user, DELETED_THE_REST, questionnaire, student=label, cohort=details["cohort"])
    return label


def _copies(cohort: Cohort, number: int) -> list[Student]:
    """Return the rows of one student in a cohort and its halves, which keep the numbers."""
    cohorts = [cohort, *halves_within(cohort)]
    return list(Student.objects.filter(cohort__in=cohorts, number=number).order_by("pk"))


def _rule_columns(questionnaire: Questionnaire) -> list[str]:
    return [q.name for q in questions_of(questionnaire.content) if q.is_rule]


def _clear_rules(student: Student, columns: Iterable[str]) -> None:
    student.email = ""
    student.attributes |= {name: "" for name in columns if name in student.attributes}


def _said(student: Student, columns: Iterable[str]) -> list[str]:
    """Return what is still there: names of rule columns, and "e-mail"."""
    kept = [name for name in columns if student.attributes.get(name)]
    return kept + (["e-mail"] if student.email else [])


def _save(copies: list[Student]) -> None:
    for copy in copies:
        copy.save(update_fields=["answers", "attributes", "email", "name"])
    Cohort.objects.filter(pk__in={copy.cohort_id for copy in copies}).update(
        revision=F("revision") + 1, updated_at=timezone.now()
    )
