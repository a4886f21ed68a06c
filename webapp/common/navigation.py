"""Lines of the rail that belong to no single application."""

from django.utils.translation import gettext_lazy as _

from webapp.common.hooks import NavigationItem, register_navigation


def register() -> None:
    """Add Home and Help; the applications add their own lines."""
    register_navigation(NavigationItem("", _("Home"), "house", "common:home"))
    register_navigation(
        NavigationItem("Workspace", _("Help"), "circle-help", "common:help", order=90)
    )
