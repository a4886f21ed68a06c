"""Stored files that the rows of an organisation need."""

from collections.abc import Iterator

from webapp.cohorts.models import Draft


def needed_uploads(organisation_id: int) -> Iterator[str]:
    """Yield the names of the files of drafts, without their suffix."""
    drafts = Draft.objects.filter(organisation_id=organisation_id)
    return map(str, drafts.values_list("pk", flat=True))
