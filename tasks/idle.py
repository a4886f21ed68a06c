"""Replacement of worker processes that have been idle since their last job, to free memory."""

import math
import signal
import sys
from types import FrameType
from typing import Any

from billiard.pool import EX_RECYCLE
from celery.signals import (
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
)
from django.conf import settings

from webapp.collector import freeze_loaded_objects


@worker_before_create_process.connect
def share_what_is_loaded(**kwargs: Any) -> None:
    """Leave to the next worker process the memory of all that the worker has loaded."""
    freeze_loaded_objects()


@worker_process_init.connect
def end_when_idle(**kwargs: Any) -> None:
    """End this worker process some time after its last job.

    Compiled code and caches of past jobs hold memory that others on an idle machine could use. The
    worker at once starts a new process, which shares the worker's memory until its first job. If a
    message arrives at that very moment and is lost, the sweep sends another one for its job.
    """
    signal.signal(signal.SIGALRM, _end)
    task_prerun.connect(_be_busy)
    task_postrun.connect(_be_idle)


def _be_busy(**kwargs: Any) -> None:
    signal.alarm(0)


def _be_idle(**kwargs: Any) -> None:
    signal.alarm(math.ceil(settings.JOB_IDLE_SECONDS))


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(EX_RECYCLE)  # the worker treats this exit code as a planned end
