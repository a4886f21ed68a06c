"""The api application."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Registers what the application adds to shared pages."""

    name = "webapp.api"
    label = "api"

    def ready(self) -> None:
        """Add the line of the rail."""
        from webapp.common import hooks

        hooks.register_navigation(
            hooks.NavigationItem("Workspace", "API", "code", "api:docs", order=40, prefix="/api/")
        )
