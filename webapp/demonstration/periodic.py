"""Results of the demonstration are started and finished one after the other."""

from webapp.common.periodic import PeriodicWork, register_periodic_work
from webapp.demonstration.services import results_advance

register_periodic_work(PeriodicWork(results_advance, "demonstration"))
