"""Context of every page: the rail with its counts and the user's appearance settings."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.toasts import pending_toasts
from webapp.translation.lazy import gettext_lazy

_SECTION_TITLES = {
    "": "",
    "Housing": gettext_lazy("Housing"),
    "Images": gettext_lazy("Images"),
    "Workspace": gettext_lazy("Workspace"),
}


def interface(request: HttpRequest) -> dict[str, Any]:
    """Return ``rail`` (sections of links) and ``theme``; evaluated only if a template uses them."""
    user = getattr(request, "user", None)
    person = user if user is not None and user.is_authenticated else None
    return {
        "rail": SimpleLazyObject(lambda: rail_of(request.path, person))
        if person is not None
        else [],
        "help_section": SimpleLazyObject(lambda: help_section_of(request.path)),
        "toasts": SimpleLazyObject(lambda: pending_toasts(request)),
        "staff_language": settings.STAFF_LANGUAGE,
        "theme": person.theme if person is not None else "auto",
        "shortcuts_enabled": person.keyboard_shortcuts if person is not None else True,
    }


def help_section_of(path: str) -> str:
    """Return the section of Help about the page at a path; "start" where no line leads to it."""
    sections = [
        (len(prefix), item.help_section)
        for item in hooks.navigation_items()
        if item.url_name != "common:help"
        if path.startswith(prefix := item.prefix or reverse(item.url_name))
    ]
    length, section = max(sections, default=(0, ""))
    return section if length > len("/") else "start"


def rail_of(path: str, user: User) -> list[dict[str, Any]]:
    """Return the sections of the rail at a path, each with the lines that the user may open."""
    sections: dict[str, list[dict[str, Any]]] = {name: [] for name in hooks.SECTIONS}
    for item in hooks.navigation_items():
        if not item.is_shown_to(user):
            continue
        url = reverse(item.url_name)
        prefix = item.prefix or url
        is_current = path == url if prefix == "/" else path.startswith(prefix)
        sections[item.section].append(
            {
                "label": item.label,
                "icon": item.icon,
                "url": url,
                "count": _right_part(item, user),
                "is_current": is_current,
            }
        )
    return [
        {"key": name.lower(), "title": _SECTION_TITLES[name], "items": items}
        for name, items in sections.items()
        if items
    ]


def _right_part(item: hooks.NavigationItem, user: User) -> int | str:
    if item.counted is not None:
        return hooks.rail_counts(user)[item.counted]
    return item.label_of(user) if item.label_of else ""
