"""Contributions of accounts to the navigation rail and the home page."""

from collections.abc import Iterable

from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.models import Role, User
from webapp.common import hooks
from webapp.common.selectors import owned_by
from webapp.translation.lazy import gettext_lazy


def register() -> None:
    """Add the line of the rail and the next step; called once when Django has started."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Workspace",
            gettext_lazy("People"),
            "user-check",
            "accounts:people",
            order=30,
            role=Role.ADMINISTRATOR,
        )
    )
    hooks.register_next_steps(next_steps)


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the step that asks a new organisation's administrator to add people."""
    if user.is_administrator and owned_by(User, user).count() == 1:
        yield hooks.NextStep(
            _("Add the people of %(organisation)s") % {"organisation": user.organisation},
            _("You are alone here. Give each of the others a sign-in name and a role."),
            reverse("accounts:people"),
            _("Add people"),
            icon="user-plus",
            order=8,
        )
