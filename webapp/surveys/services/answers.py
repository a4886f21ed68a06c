"""What students do: begin, answer, finish, come back."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.identity.students import SignedInStudent
from webapp.surveys.models import Participant, Questionnaire, new_nonce
from webapp.surveys.questions import (
    Kind,
    Question,
    QuestionnaireError,
    questions_of,
    read_answer,
)


def participant_begin(*, questionnaire: Questionnaire, identifier: str) -> Participant:
    """Begin by the code; whoever the identifier belongs to, the answer is the same.

    Raises QuestionnaireError when the questionnaire takes no code or no identifier was given.
    """
    identifier = " ".join(identifier.split())[:200]
    if not questionnaire.takes_code or not questionnaire.is_open:
        raise QuestionnaireError("This questionnaire is not open.")
    if not identifier or "\x00" in identifier:
        raise QuestionnaireError("Type your student number.")
    return Participant.objects.create(questionnaire=questionnaire, identifier=identifier)


@transaction.atomic
def participant_of_student(
    *, questionnaire: Questionnaire, student: SignedInStudent
) -> Participant:
    """Return whose answers a signed-in student's are: theirs from before, those invited by an
    address that the provider checked, or new ones."""
    if not questionnaire.is_open:
        raise QuestionnaireError("This questionnaire is not open.")
    people = Participant.objects.select_for_update().filter(questionnaire=questionnaire)
    found = people.filter(subject=student.subject).first()
    if found is None and student.email:
        found = people.filter(email=student.email, subject="").first()
    if found is None:
        found = Participant(questionnaire=questionnaire)
    if not found.subject:
        found.subject = student.subject
        found.identifier = student.number
        found.nonce = new_nonce()  # a link that was mailed opens nothing any more
        try:
            with transaction.atomic():
                found.save()
        except IntegrityError:  # the same student in another tab, at once
            found = people.get(subject=student.subject)
    return found


def participant_opened(participant: Participant, language: str) -> None:
    """Remember that a link was opened, once, and the language that was chosen."""
    if participant.opened_at is None:  # a page that is only looked at again writes nothing
        now = timezone.now()
        Participant.objects.filter(pk=participant.pk, opened_at=None).update(opened_at=now)
    if language and language != participant.language:
        Participant.objects.filter(pk=participant.pk).update(language=language)


def answer_save(*, participant: Participant, question: Question, values: list[str]) -> Any:
    """Keep one answer and return it; raise QuestionnaireError for none of the answers.

    Two answers that arrive at once do not undo each other: the row is locked while it changes.
    """
    value = read_answer(question, values)
    with transaction.atomic():
        found = locked_participant(participant)
        found.answers[question.key] = value
        found.updated_at = timezone.now()
        found.save(update_fields=["answers", "updated_at"])
    participant.answers = found.answers
    return value


def answers_finish(*, participant: Participant) -> None:
    """Say that the answers are complete; they can still be changed until it closes."""
    if missing_consent(participant, questions_of(participant.questionnaire.content)):
        raise QuestionnaireError(_("Your consent is needed to finish."))
    with transaction.atomic():
        found = locked_participant(participant)
        now = timezone.now()
        found.finished_at, found.updated_at = found.finished_at or now, now
        found.save(update_fields=["finished_at", "updated_at"])
    participant.finished_at = found.finished_at


def missing_consent(participant: Participant, questions: Sequence[Question]) -> Question | None:
    """Return the first consent that somebody has not given."""
    consents = (question for question in questions if question.kind is Kind.CONSENT)
    return next((q for q in consents if participant.answers.get(q.key) != "yes"), None)


def locked_participant(participant: Participant) -> Participant:
    """Lock somebody's row until the transaction ends; refuse where it was deleted."""
    found = Participant.objects.select_for_update().filter(pk=participant.pk).first()
    if found is None:
        raise QuestionnaireError(_("Your answers were removed."))
    return found
