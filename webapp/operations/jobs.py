"""The one job of operations: a backup, into the folder that the installation names."""

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from webapp.common import formats
from webapp.common.backup import backup_write
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job
from webapp.jobs.registry import job_kind

BACKUP = "operations.backup"
_OWN_NAME = re.compile(r"hall-\d{4}-\d\d-\d\d-\d{6}\.tar")


def backup_name() -> str:
    """Return the name of a backup of now; names sort by time."""
    return f"hall-{timezone.localtime():%Y-%m-%d-%H%M%S}.tar"


@job_kind(BACKUP, verb="Back up", kept=lambda job: "No backup was made; earlier ones are whole.")
def back_up(context: JobContext) -> dict[str, Any]:
    """Write a backup as ``manage.py backup`` does, and remove the oldest of those made here."""
    target = Path(settings.BACKUP_FOLDER) / context.parameters["name"]

    def say(sentence: str, fraction: float | None) -> None:
        context.raise_if_stopped()
        context.report(sentence, fraction)

    if not target.exists():  # else an attempt that was killed at its very end wrote it, whole
        backup_write(target, say)
    size = target.stat().st_size / 1e9
    removed = _remove_oldest(target.parent)
    left = f" {formats.counted(removed, 'older backup')} removed." if removed else ""
    return {"sentence": f"{target.name} holds everything, {size:.2g} GB.{left}"}


def _remove_oldest(folder: Path) -> int:
    """Leave as many backups as are kept, of those that have a name of ours."""
    own = sorted(path for path in folder.iterdir() if _OWN_NAME.fullmatch(path.name))
    surplus = own[: -settings.BACKUPS_KEPT]
    for path in surplus:
        path.unlink(missing_ok=True)
    return len(surplus)


def backup_running() -> Job | None:
    """Return the backup that waits or is made, of whichever organisation."""
    return Job.objects.filter(kind=BACKUP, state__in=("queued", "running")).first()
