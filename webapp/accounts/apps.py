"""Application configuration of accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Application configuration of accounts: signals of sign-ins, the rail and the home page."""

    name = "webapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Import the signal receivers, and add the contents of shared pages."""
        from webapp.accounts import shared_pages, signals  # noqa: F401

        shared_pages.register()
