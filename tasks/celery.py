"""Celery application, configured by Django's settings under ``CELERY_``."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("bethe_hall", include=["tasks.jobs", "tasks.heartbeat", "tasks.idle"])
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def keep_our_log(**kwargs: Any) -> None:
    """Leave logging as the settings configured it."""
