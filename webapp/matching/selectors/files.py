"""Stored files that an organisation's rows refer to."""

from collections.abc import Iterator

from webapp.matching.models import LearnedModel


def needed_weights(organisation_id: int) -> Iterator[str]:
    """Yield the names of the files of models, without suffix."""
    models = LearnedModel.objects.filter(organisation_id=organisation_id)
    return map(str, models.values_list("pk", flat=True))
