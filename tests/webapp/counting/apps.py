"""The test application."""

from django.apps import AppConfig


class CountingConfig(AppConfig):
    """Its jobs module is found like that of every application."""

    name = "tests.webapp.counting"
    label = "counting"
