"""Additions of the demonstration to the loader and the home page."""

from typing import Any

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.demonstration.selectors import (
    demonstration_results,
    doing_now,
    has_closed_tour,
    mark_of,
)
from webapp.demonstration.services import results_load


def register() -> None:
    """Register the loader, which runs after those of the data, and the panel of Home."""
    hooks.register_demonstration(results_load, order=90)
    hooks.register_home_panel(
        hooks.HomePanel("demonstration/_home_panel.html", home_panel, order=-10)
    )


def home_panel(user: User) -> dict[str, Any] | None:
    """Return what is being prepared, then the results; None once the tour is closed.

    Without a demonstration there is no panel. A result that is missing keeps the panel open.
    """
    results = demonstration_results(user)
    n_ready = sum(bool(result.url) for result in results)
    is_complete = n_ready == len(results)
    is_tour_closed = bool(results) and has_closed_tour(user)
    if not results or (is_complete and is_tour_closed):
        return None
    return {
        "results": results,
        "n_ready": n_ready,
        "is_complete": is_complete,
        "is_active": any(result.is_open for result in results),
        "doing": doing_now(results),
        "is_tour_closed": is_tour_closed,
        "is_staff": user.is_staff_member,
        "is_lead": True,
        "mark": mark_of(results),
    }
