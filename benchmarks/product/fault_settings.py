"""The product's settings for the fault run: kills come far more often than anywhere else."""

from tests.webapp.live_settings import *  # noqa: F403

JOB_MAX_DEATHS = JOB_MAX_ATTEMPTS = (
    10_000  # in an installation far fewer: a job that ends its process is given up
)
JOB_ORPHAN_SECONDS = 10.0
ORGANISATION_MAX_WAITING_JOBS = 1_000  # all wait from the beginning
JOB_STUCK_SECONDS = 45.0
