"""Mails about time slots are sent when they are due."""

from webapp.common.periodic import MAILS, PeriodicWork, register_periodic_work
from webapp.room_choice.services.mails import slot_mails_send

register_periodic_work(PeriodicWork(slot_mails_send, MAILS, repeats=True))
