"""Lines of the rail that belong to no single application."""

from webapp.common.hooks import NavigationItem, register_navigation


def register() -> None:
    """Add Home and Help; the applications add their own lines."""
    register_navigation(NavigationItem("", "Home", "house", "common:home"))
    register_navigation(NavigationItem("Workspace", "Help", "circle-help", "common:help", order=90))
