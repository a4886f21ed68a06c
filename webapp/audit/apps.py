"""Application configuration of the audit log."""

from django.apps import AppConfig

from webapp.translation.lazy import gettext_lazy as _


class AuditConfig(AppConfig):
    """Application configuration of the audit log, which adds its line to the navigation rail."""

    name = "webapp.audit"
    label = "audit"

    def ready(self) -> None:
        """Register the audit log's line in the navigation rail."""
        from webapp.accounts.models import Role
        from webapp.common.hooks import NavigationItem, register_navigation

        register_navigation(
            NavigationItem(
                "Workspace", _("Audit log"), "scroll-text", "audit:log", order=20, role=Role.STAFF
            )
        )
