"""Metrics of backups."""

from collections.abc import Iterable

from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from webapp.common.models import Installation


def backup_gauges() -> Iterable[Metric]:
    """Yield the age of the last backup; nothing before the first one."""
    row = Installation.objects.filter(backed_up_at__isnull=False).first()
    if row is not None and row.backed_up_at is not None:
        age = GaugeMetricFamily(
            "bethe_hall_backup_age_seconds", "Seconds since the last backup; absent before it."
        )
        age.add_metric([], max((timezone.now() - row.backed_up_at).total_seconds(), 0.0))
        yield age
