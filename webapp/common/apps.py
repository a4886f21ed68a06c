"""What every application shares."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Registers the system checks."""

    name = "webapp.common"
    label = "common"

    def ready(self) -> None:
        """Import what registers itself."""
        from django.urls import register_converter

        from webapp.common import checks, navigation  # noqa: F401
        from webapp.common.converters import TableFormat

        register_converter(TableFormat, "table")
        navigation.register()
