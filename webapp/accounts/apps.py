"""The accounts application."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Connects the signals that record sign-ins."""

    name = "webapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Import what registers itself."""
        from webapp.accounts import signals  # noqa: F401
