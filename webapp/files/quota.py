"""Storage quota of an organisation, so that no organisation fills the disk for all.

Accepted data never passes the limit. Files are written first and counted in the transaction that
keeps them; a run is counted when it is accepted, with the possible size of its result. The row of
the organisation holds the count and is locked meanwhile, so two writers never both take the last
room. Data that is not counted at once (thumbnails made again, the checkpoint of a running job) is
counted when the folder is walked, at the latest 30 seconds after something was stored. That walk is
done before the transaction, so that nobody waits for it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation
from webapp.common.errors import Refusal
from webapp.files import store
from webapp.files.storage import organisation_folder

_COUNT_HOLDS = timedelta(seconds=30)  # thousands of files in a row must not each walk the folder

P = ParamSpec("P")
R = TypeVar("R")
Promises = Callable[[int, datetime], int]
_promises: list[Promises] = []


class QuotaError(Refusal):
    """Error of an organisation without room; one sentence gives the size that it would use."""


def register_promises(function: Promises) -> None:
    """Register a source of bytes that accepted work will still write.

    It gets the key of an organisation and the time of the last walk, and returns the number of
    bytes still to come, or written since.
    """
    if function not in _promises:
        _promises.append(function)


def with_fresh_count(service: Callable[P, R]) -> Callable[P, R]:
    """Decorate a service that stores something: the count of its ``user`` is refreshed first.

    Use it outside the transaction of the service.
    """

    @wraps(service)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        user: Any = kwargs["user"]
        refresh_count(user.organisation_id)
        return service(*args, **kwargs)

    return wrapped


def refresh_count(organisation: Any) -> None:
    """Walk the folder if the last walk is old; call it before a transaction that stores data.

    The row is not locked meanwhile. Bytes that others count during the walk are kept, even if the
    walk found them too: the count may be too high until the next one, and no refusal rests on it.
    """
    key = getattr(organisation, "pk", organisation)
    before = Organisation.objects.get(pk=key)
    start = timezone.now()
    if before.stored_at is not None and start - before.stored_at <= _COUNT_HOLDS:
        return
    found = stored_bytes(key) - before.stored_bytes
    unwalked = Organisation.objects.filter(pk=key, stored_at=before.stored_at)
    unwalked.update(stored_bytes=F("stored_bytes") + found, stored_at=start)


def check_quota(organisation: Any, *, written: int = 0) -> None:
    """Count bytes that were just written; refuse them if they and all promised bytes do not fit.

    Call it last in the transaction that keeps the files or promises, and remove the file when it
    raises. Deleting makes room at once: before it refuses, it walks the folder. Apart from that it
    trusts the count, which :func:`refresh_count` renews.

    Parameters
    ----------
    organisation : Organisation or its key
    written : int
        Bytes of files in the organisation's folder that were not counted yet.

    Raises
    ------
    QuotaError
        If it would store more than ``ORGANISATION_QUOTA_GB``.
    """
    key = getattr(organisation, "pk", organisation)
    row = lock_organisation(key)
    limit = settings.ORGANISATION_QUOTA_GB * 1000**3
    stored, at = row.stored_bytes + written, row.stored_at
    promised = 0 if at is None else _promised(key, at)
    if at is None or stored + promised > limit:
        at = timezone.now()
        stored, promised = stored_bytes(key), _promised(key, at)
    if stored + promised > limit:
        raise QuotaError(_sentence(stored, promised))
    Organisation.objects.filter(pk=key).update(stored_bytes=stored, stored_at=at)


def add_stored(key: int, written: int) -> None:
    """Count bytes written into reserved room; nothing is refused."""
    Organisation.objects.filter(pk=key).update(stored_bytes=F("stored_bytes") + written)


def lock_organisation(key: int) -> Organisation:
    """Return the organisation's row, locked until the transaction ends.

    Hold it to keep or remove bytes. Lock it after the row of a job, never before.
    """
    return Organisation.objects.select_for_update(no_key=True).get(pk=key)


def stored_bytes(organisation: Any) -> int:
    """Return the current size of an organisation's files (an instance or its key) in bytes."""
    return _size_of(organisation_folder(organisation))


def _promised(key: int, since: datetime) -> int:
    return sum(function(key, since) for function in _promises)


def _sentence(stored: int, promised: int) -> str:
    share = ""
    if promised:
        words = _("%(promised)s GB of it for computations")
        share = ", " + words % {"promised": f"{promised / 1000**3:.3g}"}
    return _(
        "With this, your organisation would take %(stored)s GB of the "
        "%(quota)s GB that it may use%(share)s. Remove images, "
        "predictions or cohorts that are no longer needed. This was not stored or "
        "started."
    ) % {
        "stored": f"{(stored + promised) / 1000**3:.3g}",
        "quota": f"{settings.ORGANISATION_QUOTA_GB:g}",
        "share": share,
    }


def _size_of(folder: Path) -> int:
    return sum(file.size for file in store.files(folder))
