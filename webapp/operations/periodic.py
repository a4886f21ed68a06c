"""Faults of the installation open alerts with mails, and backups that were killed are removed."""

from webapp.common.backup import backups_tidy
from webapp.common.periodic import (
    CHECKS,
    DAY,
    MAILS,
    TIDYING,
    PeriodicWork,
    register_periodic_work,
)
from webapp.operations.alerts import alert_mails_send, alerts_note

register_periodic_work(
    PeriodicWork(alerts_note, CHECKS, order=60),
    PeriodicWork(alert_mails_send, MAILS, repeats=True),
    PeriodicWork(backups_tidy, TIDYING, DAY),
)
