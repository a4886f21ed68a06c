"""Uploads of rooms that nobody imported are removed after their days."""

from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work
from webapp.housing.services.buildings import building_drafts_expire

register_periodic_work(PeriodicWork(building_drafts_expire, TIDYING, DAY))
