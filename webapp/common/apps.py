"""Configuration of the application that all others share."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Application that registers the system checks, path converters, Home and Help."""

    name = "webapp.common"
    label = "common"

    def ready(self) -> None:
        """Import the modules that register themselves."""
        from django.urls import register_converter

        from webapp import checks  # noqa: F401
        from webapp.common import navigation
        from webapp.common.converters import TableFormat

        register_converter(TableFormat, "table")
        navigation.register()
