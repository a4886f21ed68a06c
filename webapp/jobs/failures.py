"""Failure of a job: its reason and an advice. The job's kind reports what is left behind."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import ngettext_lazy

from webapp.database.full_disk import FULL_DISK
from webapp.translation.lazy import format_lazy, gettext_lazy


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason and advice for a failed job, in the user's words; the advice may be empty."""

    reason: str
    advice: str = ""


def _counted(words: Any, count: int) -> str:
    """Return the plural form of a count, whose {count} is replaced when it is used."""
    return format_lazy(words, count=count)


OUR_FAULT = Failure(
    gettext_lazy("Something failed on our side."),
    gettext_lazy("Start it again; if it fails again, tell an administrator the time of this job."),
)
DISK_FULL = Failure(
    FULL_DISK, gettext_lazy("Start it again once whoever runs this server has made room.")
)
OUT_OF_MEMORY = Failure(gettext_lazy("This needs more memory than the machine has."))
TOO_LONG = Failure(
    _counted(
        ngettext_lazy(
            "It ran for {count} hour, the most that a job may.",
            "It ran for {count} hours, the most that a job may.",
            settings.JOB_HARD_TIME_LIMIT // 3600,
        ),
        settings.JOB_HARD_TIME_LIMIT // 3600,
    ),
    gettext_lazy("Make it smaller, or accept a larger gap."),
)
GIVEN_UP = Failure(
    _counted(
        ngettext_lazy(
            "The process of this computation ended by itself {count} time, and it was given up.",
            "The process of this computation ended by itself {count} times, and it was given up.",
            settings.JOB_MAX_DEATHS,
        ),
        settings.JOB_MAX_DEATHS,
    ),
    gettext_lazy("It may need more memory than this machine has."),
)
INTERRUPTED = Failure(
    _counted(
        ngettext_lazy(
            "The server was stopped {count} time while this ran, and it was given up.",
            "The server was stopped {count} times while this ran, and it was given up.",
            settings.JOB_MAX_ATTEMPTS,
        ),
        settings.JOB_MAX_ATTEMPTS,
    ),
    gettext_lazy("Start it again when the server runs without interruptions."),
)
