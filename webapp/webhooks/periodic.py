"""Deliveries are sent when they are due, and old ones are removed."""

from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work
from webapp.webhooks.services import deliveries_expire, deliveries_send

register_periodic_work(
    PeriodicWork(deliveries_send, "webhooks", repeats=True),
    PeriodicWork(deliveries_expire, TIDYING, DAY),
)
