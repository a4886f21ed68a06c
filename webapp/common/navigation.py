"""Lines of the rail that belong to no single application."""

from webapp.common.hooks import NavigationItem, register_navigation
from webapp.translation.lazy import gettext_lazy as _


def register() -> None:
    """Add Home and Help; the applications add their own lines."""
    register_navigation(NavigationItem("", _("Home"), "house", "common:home"))
    register_navigation(
        NavigationItem("Workspace", _("Help"), "circle-help", "common:help", order=90)
    )
