"""What every page knows: the rail with its counts and the user's appearance settings."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from webapp.common import hooks
from webapp.common.toasts import pending_toasts


def interface(request: HttpRequest) -> dict[str, Any]:
    """Return ``rail`` (sections of links) and ``theme``; evaluated only if a template uses them."""
    user = getattr(request, "user", None)
    signed_in = user is not None and user.is_authenticated
    return {
        "rail": SimpleLazyObject(lambda: rail_of(request)) if signed_in else [],
        "toasts": SimpleLazyObject(lambda: pending_toasts(request)),
        "theme": user.theme if signed_in else "auto",
        "shortcuts_enabled": user.keyboard_shortcuts if signed_in else True,
    }


def rail_of(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sections of the rail, each with the lines that the user may open."""
    sections: dict[str, list[dict[str, Any]]] = {name: [] for name in hooks.SECTIONS}
    for item in hooks.navigation_items():
        if item.role is not None and not request.user.has_role(item.role):
            continue
        url = reverse(item.url_name)
        prefix = item.prefix or url
        is_current = request.path == url if prefix == "/" else request.path.startswith(prefix)
        sections[item.section].append(
            {
                "label": item.label,
                "icon": item.icon,
                "url": url,
                "count": item.count(request.user) if item.count else "",
                "is_current": is_current,
            }
        )
    return [{"title": title, "items": items} for title, items in sections.items() if items]
