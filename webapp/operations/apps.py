"""The operations application."""

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """Adds Operations to the rail of administrators."""

    name = "webapp.operations"
    label = "operations"

    def ready(self) -> None:
        """Register the rail's line."""
        from webapp.accounts.models import Role
        from webapp.common.hooks import NavigationItem, register_navigation

        register_navigation(
            NavigationItem(
                "Workspace",
                "Operations",
                "sliders-horizontal",
                "operations:page",
                order=30,
                role=Role.ADMINISTRATOR,
            )
        )
