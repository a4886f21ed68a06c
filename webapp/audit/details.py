"""Details of audit lines in words."""

from typing import Any

from django.utils.translation import gettext as _


def details_sentence(details: dict[str, Any]) -> str:
    """Return the details of a line in words, never as raw JSON."""
    return ", ".join(
        f"{name.replace('_', ' ')} {details_text(item)}" for name, item in details.items()
    )


def details_text(item: Any) -> str:
    """Return one detail as text: lists with commas, long lists shortened."""
    if isinstance(item, dict):
        return "; ".join(f"{name} {details_text(value)}" for name, value in item.items())
    if isinstance(item, list):
        shown = ", ".join(details_text(value) for value in item[:8])
        return (
            _("%(shown)s and %(more)s more") % {"shown": shown, "more": len(item) - 8}
            if len(item) > 8
            else shown
        )
    if isinstance(item, bool):
        return "yes" if item else "no"
    return str(item)
