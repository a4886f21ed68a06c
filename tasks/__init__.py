"""The Celery application; thin: an id goes to a service, which calls the engine."""

from tasks.celery import app

__all__ = ["app"]
