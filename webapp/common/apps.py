"""Configuration of the application that all others share."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Application that registers the system checks."""

    name = "webapp.common"
    label = "common"

    def ready(self) -> None:
        """Import the modules that register themselves."""
        from django.urls import register_converter

        from webapp.common import checks, navigation  # noqa: F401
        from webapp.common.converters import TableFormat

        register_converter(TableFormat, "table")
        navigation.register()
