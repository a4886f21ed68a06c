"""The accounts application."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Connects the signals that record sign-ins; adds people to the rail and the home page."""

    name = "webapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Import what registers itself, and add what shared pages show."""
        from webapp.accounts import shared_pages, signals  # noqa: F401

        shared_pages.register()
