"""Failure of a job: its reason and an advice. The job's kind reports what is left behind."""

from dataclasses import dataclass

from django.conf import settings

from webapp.database.full_disk import FULL_DISK


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason and advice for a failed job, in the user's words; the advice may be empty."""

    reason: str
    advice: str = ""


OUR_FAULT = Failure(
    "Something failed on our side.",
    "Start it again; if it fails again, tell an administrator the time of this job.",
)
DISK_FULL = Failure(FULL_DISK, "Start it again once whoever runs this server has made room.")
OUT_OF_MEMORY = Failure("This needs more memory than the machine has.")
TOO_LONG = Failure(
    f"It ran for {settings.JOB_HARD_TIME_LIMIT // 3600} hours, the most that a job may.",
    "Make it smaller, or accept a larger gap.",
)
GIVEN_UP = Failure(
    f"The process of this computation ended by itself {settings.JOB_MAX_DEATHS} times, and it was "
    "given up.",
    "It may need more memory than this machine has.",
)
INTERRUPTED = Failure(
    f"The server was stopped {settings.JOB_MAX_ATTEMPTS} times while this ran, and it was given "
    "up.",
    "Start it again when the server runs without interruptions.",
)
