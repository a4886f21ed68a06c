"""Identity of the people who answered: their key, and their name in a cohort."""

from dataclasses import dataclass

from webapp.audit.models import AuditLine
from webapp.surveys.models import Participant, Questionnaire

DELETED_THE_REST = "deleted what was withdrawn"


def person_key(key: int, identifier: str, email: str) -> str:
    """Return the key that all answers of one person share; ``key`` is that of the participant."""
    return (identifier or email).casefold() or f"participant {key}"


def name_in_cohort(participant: Participant) -> str:
    """Return a participant's name in a cohort."""
    return participant.identifier or participant.email or participant.code


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A person who deleted answers after a cohort was made; ``kept`` is data that a bed needs."""

    line: int
    student: str
    cohort: str
    kept: str


def withdrawn_from_cohorts(questionnaire: Questionnaire) -> list[Withdrawal]:
    """Return the people who deleted their answers after a cohort was made of them, latest first."""
    lines = AuditLine.objects.filter(
        organisation_id=questionnaire.organisation_id,
        verb__in=("withdrew", DELETED_THE_REST),
        target_id=str(questionnaire.pk),
    )
    rest = {_place(line) for line in lines if line.verb == DELETED_THE_REST}
    return [
        Withdrawal(
            line.pk,
            *_place(line),
            kept="" if _place(line) in rest else ", ".join(line.details.get("kept", ())),
        )
        for line in lines
        if line.verb == "withdrew" and line.details.get("student")
    ]


def _place(line: AuditLine) -> tuple[str, str]:
    return line.details["student"], line.details["cohort"]
