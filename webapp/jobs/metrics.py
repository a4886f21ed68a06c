"""Metrics of jobs for Prometheus, read from their rows."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Count, DateTimeField, Max, Min
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.queues import FALLBACKS, SILENT_SECONDS, is_used, queue_now
from webapp.jobs.registry import Queue

_DAY = timedelta(days=1)


def job_gauges() -> Iterable[Metric]:
    """Yield the jobs in each state, and of each queue the longest wait and the processes."""
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
    waited = GaugeMetricFamily(
        "bethe_hall_longest_wait_seconds",
        "Seconds that the oldest queued job has waited, by the queue whose workers take it.",
        labels=["queue"],
    )
    longest = {queue: 0.0 for queue in Queue if is_used(queue)}
    queued = active.filter(state=JobState.QUEUED).order_by()
    for kind, first in queued.values_list("kind").annotate(Min("created_at")):
        queue = queue_now(kind)
        longest[queue] = max(longest.get(queue, 0.0), (now - first).total_seconds())
    for queue, seconds in longest.items():
        waited.add_metric([queue.value], seconds)
    yield waited
    processes = GaugeMetricFamily(
        "bethe_hall_worker_processes",
        "Jobs that the answering workers of a queue run at once; card: only where there was one.",
        labels=["queue"],
    )
    for queue, count in _processes().items():
        processes.add_metric([queue.value], count)
    yield processes
    beat = both.filter(state=JobState.RUNNING).aggregate(Max("heartbeat_at"))["heartbeat_at__max"]
    if beat:
        silence = GaugeMetricFamily(
            "bethe_hall_heartbeat_age_seconds",
            "Seconds since any running job said last that it lives; absent while none runs.",
        )
        silence.add_metric([], max((now - beat).total_seconds(), 0.0))
        yield silence


def _processes() -> dict[Queue, int]:
    """Return the processes of answering workers, by queue.

    A queue that other workers serve as well appears only if one of its own workers is known, so
    that an alarm about a missing worker does not sound where none was ever started.
    """
    counts = {queue: 0 for queue in Queue if queue not in FALLBACKS}
    for worker in Worker.objects.annotate(now=Now(output_field=DateTimeField())):
        queue = next((queue for queue in Queue if queue == worker.queue), None)
        if queue is not None:
            is_silent = worker.now - worker.seen_at >= timedelta(seconds=SILENT_SECONDS)
            counts[queue] = counts.get(queue, 0) + (0 if is_silent else worker.processes)
    return counts
