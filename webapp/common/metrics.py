"""What Prometheus reads: requests of all web processes, jobs and room on disk at this moment."""

import os
import shutil
from collections.abc import Callable, Iterable

from django.conf import settings
from django.utils import timezone
from prometheus_client import (
    CollectorRegistry,
    Histogram,
    Metric,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webapp.common.models import Installation

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

_own = CollectorRegistry()
_requests = Histogram(
    "bethe_hall_request_seconds",
    "Seconds from a request to the beginning of its answer.",
    ("view", "status"),
    buckets=_SECONDS,
    registry=_own,
)
# An application adds what it can count at the moment of reading; see webapp/jobs/apps.py.
gauges: list[Callable[[], Iterable[Metric]]] = []


def count_request(view: str, status: int, seconds: float) -> None:
    """Count one answer by its view's name and the class of its status ("2xx")."""
    _requests.labels(view or "none", f"{status // 100}xx").observe(seconds)


def exposition() -> bytes:
    """Return everything in Prometheus's text format.

    With ``PROMETHEUS_MULTIPROC_DIR``, which the supervisor sets, requests are those of all web
    processes of this host; without it, of the one that answers.
    """
    registry = CollectorRegistry()
    registry.register(_Now())
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry)
    return generate_latest(_own) + generate_latest(registry)


class _Now(Collector):
    """What is true when it is asked."""

    def collect(self) -> Iterable[Metric]:
        """Yield the room on disk and what applications add."""
        free = GaugeMetricFamily("bethe_hall_free_bytes", "Bytes that are free where files lie.")
        free.add_metric([], shutil.disk_usage(settings.INSTANCE_DIR).free)
        yield free
        row = Installation.objects.filter(backed_up_at__isnull=False).first()
        if row is not None:
            age = GaugeMetricFamily(
                "bethe_hall_backup_age_seconds", "Seconds since the last backup; absent before it."
            )
            age.add_metric([], max((timezone.now() - row.backed_up_at).total_seconds(), 0.0))
            yield age
        for gauge in gauges:
            yield from gauge()
