"""Acts of students: begin, answer, finish, come back."""

from collections.abc import Sequence
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.database.passing_notes import leave_note
from webapp.identity.students import SignedInStudent
from webapp.surveys.answer_files import file_keep
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import AnswerFile, Participant, Questionnaire, new_nonce
from webapp.surveys.questions import Question, questions_of, read_answer, shown_questions
from webapp.surveys.services.requests import request_note, request_target
from webapp.surveys.services.written import written_note


def participant_begin(*, questionnaire: Questionnaire, identifier: str) -> Participant:
    """Begin by the code; the response is the same for every identifier.

    Raises QuestionnaireError if the questionnaire takes no code or no identifier was given.
    """
    identifier = " ".join(identifier.split())[:200]
    if not questionnaire.takes_code or not questionnaire.is_open:
        raise QuestionnaireError(_("This questionnaire is not open."))
    if not identifier or "\x00" in identifier:
        raise QuestionnaireError(_("Type your student number."))
    return Participant.objects.create(questionnaire=questionnaire, identifier=identifier)


@transaction.atomic
def participant_of_student(
    *, questionnaire: Questionnaire, student: SignedInStudent
) -> Participant:
    """Return a signed-in student's participant: by sign-in, by checked e-mail, or a new one."""
    if not questionnaire.is_open:
        raise QuestionnaireError(_("This questionnaire is not open."))
    people = Participant.objects.select_for_update().filter(questionnaire=questionnaire)
    found = people.filter(subject=student.subject).first()
    if found is None and student.email:
        found = people.filter(email=student.email, subject="").first()
    if found is None:
        found = Participant(questionnaire=questionnaire)
    if not found.subject:
        found.subject = student.subject
        found.identifier = student.number
        found.nonce = new_nonce()  # the mailed link becomes invalid
        try:
            with transaction.atomic():
                found.save()
        except IntegrityError:  # the same student in another tab, at the same time
            found = people.get(subject=student.subject)
    return found


def participant_opened(participant: Participant, language: str) -> None:
    """Store that a link was opened, once, and the chosen language."""
    if participant.opened_at is None:  # opening the page again writes nothing
        unopened = Participant.objects.filter(pk=participant.pk, opened_at=None)
        leave_note(lambda: unopened.update(opened_at=timezone.now()))
    if language and language != participant.language:
        people = Participant.objects.filter(pk=participant.pk)
        leave_note(lambda: people.update(language=language))


def answer_save(
    *,
    participant: Participant,
    question: Question,
    values: Sequence[str] = (),
    file: UploadedFile | None = None,
    is_declined: bool = False,
) -> Any:
    """Store one answer and return it; an empty answer deletes the previous one.

    ``is_declined`` means that the person prefers not to say, which is stored as None. Two answers
    that arrive at once do not overwrite each other: the row is locked while it changes. Raises
    QuestionnaireError, in the active language, for an invalid answer.
    """
    value = None if is_declined or question.kind is Kind.FILE else read_answer(question, values)
    if is_declined and question.is_required:
        raise QuestionnaireError(_("This question needs an answer."))
    with transaction.atomic():
        found = locked_participant(participant)
        before = found.answers.get(question.key)
        if question.kind is Kind.FILE:
            value = _file_value(found, question, file, is_declined=is_declined)
        if question.kind is Kind.REQUEST:
            target = request_target(found, question.key, value) if value else None
            request_note(found, question.key, target)
        if value is None and not is_declined:
            found.answers.pop(question.key, None)
        else:
            found.answers[question.key] = value
        found.updated_at = timezone.now()
        found.save(update_fields=["answers", "updated_at"])
        if question.is_written and value != before:
            written_note(participant=found, question=question, value=value)
    participant.answers = found.answers
    return value


def _file_value(
    participant: Participant, question: Question, file: UploadedFile | None, *, is_declined: bool
) -> dict[str, str] | None:
    """Return the value to store for a file question; without a new file the old one stays."""
    if is_declined:
        AnswerFile.objects.filter(participant=participant, key=question.key).delete()
        return None
    if file is None:
        kept: dict[str, str] | None = participant.answers.get(question.key)
        return kept
    made = file_keep(participant=participant, key=question.key, file=file)
    return {"name": made.name, "file": str(made.uuid)}


def answers_finish(*, participant: Participant) -> None:
    """Mark the answers as complete; they can still be changed until the questionnaire closes."""
    lacking = missing_answers(participant, questions_of(participant.questionnaire.content))
    if lacking:
        if lacking[0].kind is Kind.CONSENT:
            raise QuestionnaireError(_("Your consent is needed to finish."))
        raise QuestionnaireError(_("Some questions still need an answer."))
    with transaction.atomic():
        found = locked_participant(participant)
        now = timezone.now()
        found.finished_at, found.updated_at = found.finished_at or now, now
        found.save(update_fields=["finished_at", "updated_at"])
    participant.finished_at = found.finished_at


def missing_answers(participant: Participant, questions: Sequence[Question]) -> list[Question]:
    """Return the questions that a person must answer to finish, consents first."""
    asked = shown_questions(questions, participant.answers)
    lacking = [q for q in asked if needs_answer(q) and participant.answers.get(q.key) is None]
    return sorted(lacking, key=lambda question: question.kind is not Kind.CONSENT)


def needs_answer(question: Question) -> bool:
    """Return True if a question must be answered to finish."""
    return question.is_required or question.kind is Kind.CONSENT


def locked_participant(participant: Participant) -> Participant:
    """Return a participant's row, locked until the transaction ends; refuse if it was deleted."""
    people = Participant.objects.select_for_update(of=("self",)).filter(pk=participant.pk)
    found = people.select_related("questionnaire__organisation").first()
    if found is None:
        raise QuestionnaireError(_("Your answers were removed."))
    return found
