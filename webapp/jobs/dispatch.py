"""The one place where the web application speaks to the broker: it sends ids."""

import uuid

import structlog
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from tasks.celery import app

log = structlog.get_logger(__name__)


def send(job_id: uuid.UUID) -> bool:
    """Send one id to the workers; return False, after a log line, when the broker is away."""
    try:
        app.send_task("tasks.run_job", args=[str(job_id)], retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("broker away, the job stays queued", job=str(job_id), error=str(error))
        return False
    return True
