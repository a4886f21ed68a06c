"""The audit application."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Adds the audit log to the rail."""

    name = "webapp.audit"
    label = "audit"

    def ready(self) -> None:
        """Register the rail's line."""
        from webapp.accounts.models import Role
        from webapp.common.hooks import NavigationItem, register_navigation

        register_navigation(
            NavigationItem(
                "Workspace", "Audit log", "scroll-text", "audit:log", order=20, role=Role.STAFF
            )
        )
