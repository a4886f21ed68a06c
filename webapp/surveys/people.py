"""Who answered: by what somebody is told from others, and by what a cohort knows them."""

from collections import Counter

from webapp.audit.models import AuditLine
from webapp.surveys.models import Participant, Questionnaire


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


def withdrawn_from_cohorts(questionnaire: Questionnaire) -> list[tuple[str, str]]:
    """Return [(student, cohort)] of who deleted their answers after a cohort was made of them."""
    lines = AuditLine.objects.filter(
        organisation_id=questionnaire.organisation_id,
        verb="withdrew",
        target_id=str(questionnaire.pk),
    )
    return [
        (line.details["student"], line.details["cohort"])
        for line in lines
        if line.details.get("student")
    ]
