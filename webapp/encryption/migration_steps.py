"""Parts of migrations that encrypt columns in which there are texts already."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import Q

from webapp.monitoring.masking import mask_addresses

_BATCH = 500
Step = Callable[[Any, Any], None]


def sealing(app: str, columns: Mapping[str, Sequence[str]]) -> Step:
    """Return a step that writes columns of models again: encrypted, if a key is set.

    It runs after the fields were altered. Running it twice changes nothing that is read.
    """

    def run(apps: Any, schema_editor: Any) -> None:
        if not settings.ENCRYPTION_KEYS:
            return
        for model, names in columns.items():
            rows = apps.get_model(app, model).objects.using(schema_editor.connection.alias)
            for keys in _batches(rows):
                found = list(rows.filter(pk__in=keys).only(*names))
                rows.bulk_update(found, list(names), batch_size=_BATCH)

    return run


def masking_errors(app: str, models: Sequence[str]) -> Step:
    """Return a step that takes e-mail addresses out of the stored answers of mail servers."""

    def run(apps: Any, schema_editor: Any) -> None:
        for model in models:
            rows = apps.get_model(app, model).objects.using(schema_editor.connection.alias)
            for keys in _batches(rows.filter(Q(error__contains="@"))):
                found = list(rows.filter(pk__in=keys).only("error"))
                for row in found:
                    row.error = mask_addresses(row.error)[:200]
                rows.bulk_update(found, ["error"], batch_size=_BATCH)

    return run


def _batches(rows: Any) -> list[list[Any]]:
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    return [keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH)]
