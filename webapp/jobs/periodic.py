"""Jobs of dead workers go back into the queue, and workers are asked for a sign of life."""

from webapp.common.periodic import CHECKS, PeriodicWork, register_periodic_work
from webapp.jobs.services import jobs_sweep
from webapp.jobs.workers import workers_note

register_periodic_work(
    PeriodicWork(jobs_sweep, CHECKS),
    PeriodicWork(workers_note, CHECKS),
)
