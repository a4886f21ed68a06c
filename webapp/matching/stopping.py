"""Stop condition of learning: cancelled, or stopped with the weights so far."""

import threading
import time
from collections.abc import Callable

from webapp.jobs.context import STOP_SECONDS, JobContext
from webapp.matching.models import LearnedModel


def stop_asked(context: JobContext, model: LearnedModel) -> Callable[[], bool]:
    """Return a function that is True once the job is cancelled or asked to stop with its weights.

    It may be called from any thread; only the thread that made it reads the row.
    """
    owner, is_asked, next_look = threading.get_ident(), False, 0.0

    def ask() -> bool:
        nonlocal is_asked, next_look
        now = time.monotonic()
        if not is_asked and threading.get_ident() == owner and now >= next_look:
            next_look = now + STOP_SECONDS
            asked = LearnedModel.objects.filter(pk=model.pk, stop_asked_at__isnull=False)
            is_asked = asked.exists()
        return context.should_stop() or is_asked

    return ask
