"""The application that tells other programs what happens."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Listens to events and registers what it adds to shared pages."""

    name = "webapp.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        """Register; models are ready only now."""
        from webapp.accounts.models import Role
        from webapp.common import events, hooks
        from webapp.webhooks.services import deliveries_queue

        events.listen(deliveries_queue)
        hooks.register_navigation(
            hooks.NavigationItem(
                "Workspace",
                "Webhooks",
                "webhook",
                "webhooks:list",
                order=42,
                role=Role.ADMINISTRATOR,
            )
        )
