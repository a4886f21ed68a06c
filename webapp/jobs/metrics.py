"""Metrics of jobs for Prometheus, read from their rows."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Count, Max, Min
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from webapp.jobs.models import Job, JobState

_DAY = timedelta(days=1)


def job_gauges() -> Iterable[Metric]:
    """Yield the number of jobs in each state, and the longest wait of a queued job."""
    now = timezone.now()
    both = Job.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING))
    active = both.filter(parent=None)  # pieces wait in proportion to the size of their job
    counts = dict(active.values_list("state").annotate(Count("pk")))
    ended = Job.objects.filter(finished_at__gt=Now() - _DAY, parent=None)
    counts |= dict(ended.values_list("state").annotate(Count("pk")))
    jobs = GaugeMetricFamily(
        "bethe_hall_jobs",
        "Jobs by state: those that wait and run now, those that ended within 24 hours.",
        labels=["state"],
    )
    for state in JobState:
        jobs.add_metric([state.value], counts.get(state.value, 0))
    yield jobs
    first = active.filter(state=JobState.QUEUED).aggregate(Min("created_at"))["created_at__min"]
    waited = GaugeMetricFamily(
        "bethe_hall_longest_wait_seconds", "Seconds that the oldest queued job has waited."
    )
    waited.add_metric([], max((now - first).total_seconds(), 0.0) if first else 0.0)
    yield waited
    beat = both.filter(state=JobState.RUNNING).aggregate(Max("heartbeat_at"))["heartbeat_at__max"]
    if beat:
        silence = GaugeMetricFamily(
            "bethe_hall_heartbeat_age_seconds",
            "Seconds since any running job said last that it lives; absent while none runs.",
        )
        silence.add_metric([], max((now - beat).total_seconds(), 0.0))
        yield silence
