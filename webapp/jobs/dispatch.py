"""The one place where the web application speaks to the broker: to send ids, and to see it."""

import uuid

import redis
import structlog
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from tasks.celery import app

_PATIENCE = 1.0  # seconds

log = structlog.get_logger(__name__)


def send(job_id: uuid.UUID, queue: str) -> bool:
    """Wake a worker of a queue; return False, after a log line, when the broker is away."""
    try:
        app.send_task("tasks.run_job", args=[str(job_id)], queue=queue, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("broker away, the job stays queued", job=str(job_id), error=str(error))
        return False
    return True


def check_broker() -> None:
    """Ask the broker something; raises what it raises when it is away."""
    client = redis.Redis.from_url(
        settings.BROKER_URL, socket_connect_timeout=_PATIENCE, socket_timeout=_PATIENCE
    )
    client.ping()


def check_worker() -> None:
    """Wait for the sign of life of any worker, which a busy one gives too; TimeoutError if none."""
    if not app.control.ping(timeout=_PATIENCE, limit=1):
        raise TimeoutError("no worker answers")
