"""Accounts that no provider vouched for in its days of trust are disabled."""

from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work
from webapp.identity.services import people_expire

register_periodic_work(PeriodicWork(people_expire, TIDYING, DAY))
