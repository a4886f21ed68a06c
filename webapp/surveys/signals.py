"""Reactions of questionnaires to changes of cohorts."""

from typing import Any

from django.dispatch import receiver

from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.signals import students_leaving
from webapp.surveys.models import Participant


@receiver(students_leaving)
def late_answers_wait(cohort: Cohort, arrivals: LateArrivals, **kwargs: Any) -> None:
    """Let answers wait for a cohort again when the students made of them are removed."""
    people = arrivals.brought.get("participants", [])
    Participant.objects.filter(pk__in=people, cohort=cohort).update(cohort=None)
