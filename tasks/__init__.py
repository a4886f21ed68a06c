"""Celery application. Tasks are thin: each passes an id to a service, which calls the engine."""

from tasks.celery import app

__all__ = ["app"]
