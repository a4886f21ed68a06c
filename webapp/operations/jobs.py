"""The backup job, which writes into the installation's backup folder."""

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.jobs.context import JobContext
from webapp.jobs.models import Job
from webapp.jobs.registry import job_kind
from webapp.operations.backup import backup_write
from webapp.translation.lazy import pgettext_lazy

BACKUP = "operations.backup"
_OWN_NAME = re.compile(r"hall-\d{4}-\d\d-\d\d-\d{6}\.tar")


def backup_name() -> str:
    """Return a file name for a backup made now; names sort by time."""
    return f"hall-{timezone.localtime():%Y-%m-%d-%H%M%S}.tar"


@job_kind(
    BACKUP,
    verb=pgettext_lazy("title of a job", "Back up"),
    kept=lambda job: _("No backup was made; earlier ones are whole."),
)
def back_up(context: JobContext) -> dict[str, Any]:
    """Write a backup as ``manage.py backup`` does, and remove the oldest ones made by this job."""
    target = Path(settings.BACKUP_FOLDER) / context.parameters["name"]

    def say(sentence: str, fraction: float | None) -> None:
        context.raise_if_stopped()
        context.report(sentence, fraction)

    if not target.exists():  # an attempt killed at its very end has written all of it
        backup_write(target, say)
    size = target.stat().st_size / 1e9
    removed = _remove_oldest(target.parent)
    sentence = _("%(file)s holds everything, %(gigabytes)s GB.") % {
        "file": target.name,
        "gigabytes": f"{size:.2g}",
    }
    if removed:
        words = ngettext(
            "%(count)s older backup removed.", "%(count)s older backups removed.", removed
        )
        sentence = f"{sentence} {words % {'count': f'{removed:,}'}}"
    return {"sentence": sentence}


def _remove_oldest(folder: Path) -> int:
    """Remove the oldest backups with a name of this job, beyond the number to keep."""
    own = sorted(path for path in folder.iterdir() if _OWN_NAME.fullmatch(path.name))
    surplus = own[: -settings.BACKUPS_KEPT]
    for path in surplus:
        path.unlink(missing_ok=True)
    return len(surplus)


def backup_running() -> Job | None:
    """Return the waiting or running backup job of any organisation."""
    return Job.objects.filter(kind=BACKUP, state__in=("queued", "running")).first()
