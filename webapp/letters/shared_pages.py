"""What letters add to the rail."""

from webapp.accounts.models import Role
from webapp.common import hooks
from webapp.common.selectors import counter_of
from webapp.letters.models import LetterTemplate


def register() -> None:
    """Add the line of the rail; letters hold names, so it is for staff."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Letters",
            "mail",
            "letters:templates",
            order=45,
            count=counter_of(LetterTemplate),
            role=Role.STAFF,
        )
    )
