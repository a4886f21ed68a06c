"""Writing audit lines."""

from typing import Any

import structlog
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from webapp.accounts.models import Organisation, User
from webapp.audit.models import AuditLine

log = structlog.get_logger(__name__)


def audit(
    user: User | None,
    verb: str,
    target: models.Model | str,
    *,
    organisation: Organisation | None = None,
    **details: Any,
) -> AuditLine:
    """Write one line for one act: an import, run, decision, export, deletion or sign-in.

    Call it in the transaction of the act, so that both stand or neither; of an export before the
    file is sent, so that none leaves without its line.

    Parameters
    ----------
    user : User or None
        Who acted; None for the system, which then needs ``organisation``.
    verb : str
        In the past and in words of the page: ``"imported"``, ``"proposed"``, ``"locked"``.
    target : Model or str
        The object, or its name when there is none; its ``str()`` is kept.
    details : Any
        What a reader will want to know (counts, file names, ids of students), as JSON values.
        Never survey answers.
    """
    is_object = isinstance(target, models.Model)
    line = AuditLine.objects.create(
        organisation=organisation or (user.organisation if user else None),
        user=user,
        username=user.get_username() if user else "system",
        verb=verb,
        target_type=str(target._meta.verbose_name) if is_object else "",
        target_id=str(target.pk) if is_object else "",
        target_name=str(target)[:200],
        details=_plain(details),
    )
    log.info("audit", verb=verb, user=line.username, target=line.target_id or line.target_name)
    return line


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details as JSON can keep them: dates and ids become text."""
    encoder = DjangoJSONEncoder()

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): convert(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set):
            return [convert(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if hasattr(value, "item"):  # a NumPy number
            return value.item()
        try:
            return encoder.default(value)
        except TypeError:
            return str(value)

    return {name: convert(value) for name, value in details.items()}
