"""Uploads that nobody imported are removed after their days."""

from webapp.cohorts.services.drafts import drafts_expire
from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work

register_periodic_work(PeriodicWork(drafts_expire, TIDYING, DAY))
