"""Who answered: by what somebody is told from others, and by what a cohort knows them."""

from collections import Counter
from dataclasses import dataclass

from webapp.audit.models import AuditLine
from webapp.surveys.models import Participant, Questionnaire

DELETED_THE_REST = "deleted what was withdrawn"


def person_key(participant: Participant) -> str:
    """Return what is the same for all answers of one person."""
    said = participant.identifier or participant.email
    return said.casefold() or f"participant {participant.pk}"


def name_in_cohort(participant: Participant) -> str:
    """Return by what a cohort knows somebody who answered."""
    return participant.identifier or participant.email or participant.code


def n_given_twice(questionnaire: Questionnaire) -> int:
    """Return how many people finished more than once; one set of answers counts of each."""
    people = questionnaire.participants.exclude(finished_at=None).defer("answers")
    times = Counter(person_key(one) for one in people)
    return sum(count > 1 for count in times.values())


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Who deleted their answers after a cohort was made; ``kept`` is what a published bed needs."""

    line: int
    student: str
    cohort: str
    kept: str


def withdrawn_from_cohorts(questionnaire: Questionnaire) -> list[Withdrawal]:
    """Return who deleted their answers after a cohort was made of them, the last one first."""
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
