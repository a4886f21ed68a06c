"""Signals of cohorts: purges, added students, and removal of files with their rows."""

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import Signal, receiver

from webapp.cohorts.draft_files import draft_path
from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.naming import forget_directories
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.files import store

# Sent with ``cohort`` and ``user`` in the transaction of a purge, before anything is deleted.
cohort_purging = Signal()
# Sent with ``cohort``, ``user`` and ``arrivals`` in the transaction that adds them, after them.
students_added = Signal()
# Sent with ``cohort`` in the transaction of an undo, so that receivers lock what they will change.
late_undo_starting = Signal()
# Sent with ``cohort``, ``user`` and ``arrivals`` in that transaction, before they are removed.
students_leaving = Signal()


@receiver(post_delete, sender=Cohort)
def forget_answers(**kwargs: Any) -> None:
    """Delete cached answers and names when a cohort is removed."""
    transaction.on_commit(forget_surveys)
    transaction.on_commit(forget_directories)


@receiver(post_delete, sender=Draft)
def remove_draft_file(instance: Draft, **kwargs: Any) -> None:
    """Remove the file of a draft once its deletion is committed."""
    path = draft_path(instance.organisation_id, instance.uuid)
    transaction.on_commit(lambda: store.remove(path))
