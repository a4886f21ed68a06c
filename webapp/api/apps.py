"""Application configuration of the API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Application that adds the API's page to the navigation rail."""

    name = "webapp.api"
    label = "api"

    def ready(self) -> None:
        """Register the line in the navigation rail."""
        from webapp.common import hooks

        hooks.register_navigation(
            hooks.NavigationItem("Workspace", "API", "code", "api:docs", order=40, prefix="/api/")
        )
