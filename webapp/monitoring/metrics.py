"""Metrics for Prometheus: requests of all web processes, jobs and current room on disk."""

import shutil
from collections.abc import Callable, Iterable

from django.conf import settings
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from webapp.monitoring.request_counts import request_counts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Applications add gauges that are computed when they are read; see webapp/jobs/apps.py.
gauges: list[Callable[[], Iterable[Metric]]] = []


def count_request(view: str, status: int, seconds: float) -> None:
    """Count one answer by its view's name and the class of its status ("2xx")."""
    request_counts().count(view, status, seconds)


def exposition() -> bytes:
    """Return everything in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Requests())
    registry.register(_Now())
    return generate_latest(registry)


class _Requests(Collector):
    """Collector of requests since the web server started."""

    def collect(self) -> Iterable[Metric]:
        """Yield the one histogram."""
        requests = HistogramMetricFamily(
            "bethe_hall_request_seconds",
            "Seconds from a request to the beginning of its answer.",
            labels=["view", "status"],
        )
        for view, status, buckets, seconds in request_counts().histograms():
            bounds = [(floatToGoString(bound), count) for bound, count in buckets]
            requests.add_metric([view, status], bounds, seconds)
        yield requests


class _Now(Collector):
    """Collector of current values, computed when it is read."""

    def collect(self) -> Iterable[Metric]:
        """Yield the room on disk and the gauges of applications."""
        free = GaugeMetricFamily("bethe_hall_free_bytes", "Bytes that are free where files lie.")
        free.add_metric([], shutil.disk_usage(settings.INSTANCE_DIR).free)
        yield free
        for gauge in gauges:
            yield from gauge()
