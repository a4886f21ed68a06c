"""What every application shares."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Registers the system checks."""

    name = "webapp.common"
    label = "common"

    def ready(self) -> None:
        """Import what registers itself."""
        from webapp.common import checks, navigation  # noqa: F401

        navigation.register()
