"""Mails that lead students to their pages are sent when they are due."""

from webapp.common.periodic import MAILS, PeriodicWork, register_periodic_work
from webapp.residents.mails import resident_mails_send

register_periodic_work(PeriodicWork(resident_mails_send, MAILS, repeats=True))
