"""Application configuration of webhooks, which report events to other programs."""

from django.apps import AppConfig

from webapp.translation.lazy import gettext_lazy as _


class WebhooksConfig(AppConfig):
    """Application that delivers events and adds its pages to the navigation."""

    name = "webapp.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        """Register listeners and pages; models are ready only now."""
        from webapp.accounts.models import Role
        from webapp.common import hooks
        from webapp.common.events import event_sent
        from webapp.webhooks.services import deliveries_queue

        event_sent.connect(deliveries_queue)
        hooks.register_navigation(
            hooks.NavigationItem(
                "Workspace",
                _("Webhooks"),
                "webhook",
                "webhooks:list",
                order=42,
                role=Role.ADMINISTRATOR,
            )
        )
