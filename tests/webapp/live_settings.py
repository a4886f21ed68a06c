"""The product's settings plus the test application, for tests that start the real processes."""

from webapp.settings import *  # noqa: F403
from webapp.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.webapp.counting"]
JOB_SWEEP_SECONDS = 1.0
JOB_IDLE_SECONDS = 5.0
ROOT_URLCONF = "tests.webapp.counting.urls"
