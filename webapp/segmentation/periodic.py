"""Removals that were cancelled or failed are finished."""

from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work
from webapp.segmentation.services.removals import removals_finish

register_periodic_work(PeriodicWork(removals_finish, TIDYING, DAY))
