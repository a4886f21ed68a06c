"""Services that write audit lines."""

from typing import Any

import structlog
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from webapp.accounts.models import Organisation, User
from webapp.audit.models import MOST_OF_VERB, AuditLine

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

    Call it in the transaction of the act, so that both are stored or neither. For an export, call
    it before the file is sent, so that every file sent has its line.

    Parameters
    ----------
    user : User or None
        The person who acted; None for the system, which then needs ``organisation``.
    verb : str
        In the past tense and the words of the page: ``"imported"``, ``"proposed"``, ``"locked"``.
    target : Model or str
        The object, or its name if there is no object; its ``str()`` is stored. An object with a
            true ``is_of_installation`` makes a line that only operators read.
    details : Any
        What a reader needs to know (counts, file names, ids of students), as JSON values.
        Never survey answers.
    """
    owner = organisation or (user.own_organisation if user else None)
    if owner is None:
        raise ValueError("An act of the system needs an organisation.")
    if len(verb) > MOST_OF_VERB:  # SQLite stores longer ones, PostgreSQL refuses the whole act
        raise ValueError(
            f"A verb of the audit log has at most {MOST_OF_VERB} characters: {verb!r}."
        )
    target_type, target_id = "", ""
    if isinstance(target, models.Model):
        target_type, target_id = str(target._meta.verbose_name), str(target.pk)
    line = AuditLine.objects.create(
        organisation=owner,
        user=user,
        username=user.get_username() if user else "system",
        verb=verb,
        target_type=target_type,
        target_id=target_id,
        target_name=str(target)[:200],
        details=_plain(details),
        is_of_installation=getattr(target, "is_of_installation", False),
    )
    log.info("audit", verb=verb, user=line.username, target=line.target_id or line.target_name)
    return line


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Return the details as JSON values: dates and ids become text."""
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
