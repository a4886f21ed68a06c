"""List of workers: the sweep asks them, and their answers are kept as rows."""

import secrets

import structlog
from django.db.models import DateTimeField, F
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from tasks.celery import app
from webapp.jobs.models import Worker

PATIENCE = 1.0  # seconds that workers have to answer
FORGET_SECONDS = 7 * 24 * 3600.0  # seconds after which it is dropped
FIGURES = ("processes", "memory_used", "memory_total")  # keys of an answer

log = structlog.get_logger(__name__)


def workers_note() -> int:
    """Ask all workers for a sign of life and record the answers; return their number."""
    try:
        replies = app.control.broadcast("report_heartbeat", reply=True, timeout=PATIENCE) or []
    except (OperationalError, RedisError, OSError) as error:
        log.warning("broker away, workers were not asked", error=str(error))
        return 0
    answers = {name: facts for reply in replies for name, facts in reply.items()}
    for name, facts in answers.items():
        known = {key: int(facts.get(key) or 0) for key in FIGURES}
        process = str(facts.get("process") or "")[:120]
        Worker.objects.update_or_create(
            name=name[:120], defaults={**known, "process": process, "seen_at": Now()}
        )
    if secrets.randbelow(100) == 0:
        for worker in workers():
            if worker.silent > FORGET_SECONDS:
                worker.delete()
    return len(answers)


def workers() -> list[Worker]:
    """Return all known workers, each with ``silent``: seconds since its answer, by the database."""
    rows: list[Worker] = []
    for row in Worker.objects.annotate(now=Now(output_field=DateTimeField())).order_by(F("name")):
        row.silent = max((row.now - row.seen_at).total_seconds(), 0.0)
        rows.append(row)
    return rows
