"""Jobs of dead workers go back into the queue; workers give a sign of life, or are ended."""

from webapp.common.periodic import CHECKS, PeriodicWork, register_periodic_work
from webapp.jobs.services import jobs_sweep
from webapp.jobs.stuck import StuckWorkers
from webapp.jobs.workers import workers_note

register_periodic_work(
    PeriodicWork(jobs_sweep, CHECKS),
    PeriodicWork(workers_note, CHECKS),
    PeriodicWork(StuckWorkers().look, CHECKS),
)
