"""Application configuration of operations."""

from django.apps import AppConfig

from webapp.translation.lazy import gettext_lazy as _


class OperationsConfig(AppConfig):
    """Application configuration of Operations, a page for administrators and operators."""

    name = "webapp.operations"
    label = "operations"

    def ready(self) -> None:
        """Register the line of Operations in the rail, and the age of the last backup."""
        from webapp.accounts.models import Role
        from webapp.common.hooks import NavigationItem, register_navigation
        from webapp.monitoring import metrics
        from webapp.operations.metrics import backup_gauges

        metrics.gauges.append(backup_gauges)

        register_navigation(
            NavigationItem(
                "Workspace",
                _("Operations"),
                "sliders-horizontal",
                "operations:page",
                order=30,
                role=Role.ADMINISTRATOR,
                for_operators=True,
            )
        )
