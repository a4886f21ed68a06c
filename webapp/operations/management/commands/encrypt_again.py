"""Command that encrypts all encrypted columns with the first key of ENCRYPTION_KEYS."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import models, transaction

from webapp.encryption.fields import SealedJSONField, SealedTextField

_BATCH = 200


class Command(BaseCommand):
    """Command that rewrites every table with an encrypted column, a few rows per transaction.

    People may continue to work: a row is locked while its current content is rewritten.
    """

    help = "Encrypt what is kept with the first key: after a key was set, changed or removed."

    def handle(self, *args: Any, **options: Any) -> None:
        """Rewrite every row with an encrypted column."""
        for model, names in _sealed():
            count = sum(_write(model, names, keys) for keys in _batches(model))
            self.stdout.write(f"{model._meta.verbose_name_plural}: {count:,} rows")


def _sealed() -> Iterator[tuple[type[models.Model], list[str]]]:
    for model in apps.get_models():
        fields = model._meta.local_concrete_fields
        names = [
            field.name for field in fields if isinstance(field, SealedJSONField | SealedTextField)
        ]
        if names:
            yield model, names


def _batches(model: type[models.Model]) -> Iterator[list[Any]]:
    keys = list(model._base_manager.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]


def _write(model: type[models.Model], names: list[str], keys: list[Any]) -> int:
    with transaction.atomic():
        rows = list(model._base_manager.select_for_update().filter(pk__in=keys))
        model._base_manager.bulk_update(rows, names, batch_size=_BATCH)
    return len(rows)
