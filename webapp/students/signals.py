"""Signals: what a process keeps of a cohort goes with the cohort."""

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from webapp.cohorts.models import Cohort
from webapp.students.search_index import forget_indexes


@receiver(post_delete, sender=Cohort)
def forget_search(**kwargs: Any) -> None:
    """Delete the indexes kept in this process when a cohort is removed."""
    transaction.on_commit(forget_indexes)
