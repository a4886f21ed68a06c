"""The only access of the web application to the broker: to send ids, and to check it."""

import uuid
from functools import cache

import redis
import structlog
from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from webapp.common.silence import broker

_PATIENCE = 1.0  # seconds

log = structlog.get_logger(__name__)


def send(job_id: uuid.UUID, queue: str) -> bool:
    """Wake a worker of a queue; return False, after a log line, if the broker is away.

    A click never waits for a silent broker: only one call in several seconds tries it, and the
    sweep sends the missing messages.
    """
    if not broker.may_ask():
        return False
    try:
        _sender().send_task("tasks.run_job", args=[str(job_id)], queue=queue, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        broker.was_silent()
        log.warning("broker away, the job stays queued", job=str(job_id), error=str(error))
        return False
    broker.answered()
    return True


def check_broker() -> None:
    """Send a request to the broker; raise its error when it is away."""
    client = redis.Redis.from_url(
        settings.BROKER_URL, socket_connect_timeout=_PATIENCE, socket_timeout=_PATIENCE
    )
    client.ping()


def check_worker() -> None:
    """Wait for a sign of life of any worker, even a busy one; TimeoutError if none comes."""
    if not _sender().control.ping(timeout=_PATIENCE, limit=1):
        raise TimeoutError("no worker answers")


@cache
def _sender() -> Celery:
    """Return this process's sending application: as `tasks.celery.app`, but less patient."""
    sender = Celery("bethe_hall_sender", set_as_current=False)
    sender.config_from_object("django.conf:settings", namespace="CELERY")
    sender.conf.broker_transport_options = {
        **settings.CELERY_BROKER_TRANSPORT_OPTIONS,
        "socket_timeout": _PATIENCE,
        "socket_connect_timeout": _PATIENCE,
    }
    return sender
