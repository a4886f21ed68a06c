"""A broker that takes no writes for a while, as with a full disk: workers go on when it does."""

import os
import signal
import time

import pytest
import redis

from tests.live.product import Product
from tests.live.visitor import Visitor
from tests.patience import wait_for

pytestmark = pytest.mark.slow

REFUSING_SECONDS = 3.0
_UNFINISHED = "SELECT count(*) FROM jobs_job WHERE state != 'succeeded'"


def test_jobs_are_done_once_the_broker_takes_writes_again(product: Product) -> None:
    """Celery ended at the first refusal, and its process hung: no job of the queue was taken."""
    visitor = Visitor(product)
    form = {"steps": "3"} | visitor.token_of(visitor.get("/counting/"))
    broker = redis.Redis.from_url((product.instance / "broker.url").read_text().strip())
    worker = product.pid_of("worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        visitor.post("/counting/", form)
        wait_for(lambda: broker.llen("short"))
        # It takes messages out of the queue, and cannot note that it has them.
        broker.config_set("maxmemory", 1)
    finally:
        os.kill(worker, signal.SIGCONT)
    log = product.instance / "log" / "worker.log"
    # A worker that is still starting logs the words of the broker without the class of the error.
    wait_for(lambda: "'maxmemory'" in log.read_text(), logs=product.logs)
    time.sleep(REFUSING_SECONDS)
    broker.config_set("maxmemory", 0)
    wait_for(lambda: product.rows(_UNFINISHED)[0][0] == 0, logs=product.logs)
