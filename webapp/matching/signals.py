"""Files go with their rows, however the rows went (a purge cascades)."""

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from webapp.common.storage import remove_path
from webapp.matching.models import LearnedModel, Proposal


@receiver(post_delete, sender=Proposal)
def remove_proposal_files(instance: Proposal, **kwargs: Any) -> None:
    """Remove arrays and marginals of a proposal once its deletion is certain."""
    if instance.arrays is not None:
        paths = (instance.arrays_path, instance.marginals_path)
        transaction.on_commit(lambda: [remove_path(path) for path in paths])


@receiver(post_delete, sender=LearnedModel)
def remove_weights(instance: LearnedModel, **kwargs: Any) -> None:
    """Remove the weights of a model once its deletion is certain."""
    path = instance.path
    transaction.on_commit(lambda: remove_path(path))
