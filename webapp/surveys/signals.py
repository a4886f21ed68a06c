"""Reactions to changes of cohorts, and to a questionnaire that is removed."""

from typing import Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.signals import students_leaving
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.translation_files import translation_files_discard


@receiver(students_leaving)
def late_answers_wait(cohort: Cohort, arrivals: LateArrivals, **kwargs: Any) -> None:
    """Let answers wait for a cohort again when the students made of them are removed."""
    people = arrivals.brought.get("participants", [])
    Participant.objects.filter(pk__in=people, cohort=cohort).update(cohort=None)


@receiver(post_delete, sender=Questionnaire)
def uploads_leave(instance: Questionnaire, **kwargs: Any) -> None:
    """Remove the uploaded translations of a questionnaire with it."""
    translation_files_discard(questionnaire=instance.pk)
