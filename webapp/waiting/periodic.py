"""Offers end at their deadline, and the next students get their beds offered."""

from webapp.common.periodic import CHECKS, PeriodicWork, register_periodic_work
from webapp.waiting.services import offers_sweep

register_periodic_work(PeriodicWork(offers_sweep, CHECKS, period=30.0))
