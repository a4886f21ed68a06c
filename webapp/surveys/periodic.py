"""Mails of questionnaires are sent when they are due, and returned mails are read."""

from webapp.common.periodic import MAILS, PeriodicWork, register_periodic_work
from webapp.surveys.bounce_mailbox import mailbox_read
from webapp.surveys.services.invitations import mails_send

register_periodic_work(
    PeriodicWork(mails_send, MAILS, repeats=True),
    PeriodicWork(mailbox_read, "mailbox"),
)
