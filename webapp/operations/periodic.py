"""Faults of the installation open alerts with mails, and backups that were killed are removed."""

from webapp.common.periodic import (
    CHECKS,
    DAY,
    MAILS,
    TIDYING,
    PeriodicWork,
    register_periodic_work,
)
from webapp.operations.alerts import alert_mails_send, alerts_note
from webapp.operations.backup import backups_tidy

register_periodic_work(
    PeriodicWork(alerts_note, CHECKS, order=60),
    PeriodicWork(alert_mails_send, MAILS, repeats=True),
    PeriodicWork(backups_tidy, TIDYING, DAY),
)
