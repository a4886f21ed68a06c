"""What questionnaires add to the rail."""

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.selectors import owned_by
from webapp.surveys.models import Questionnaire


def register() -> None:
    """Add the line of the rail."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing", "Questionnaires", "clipboard-check", "surveys:list", order=5, count=_count
        )
    )


def _count(user: User) -> int:
    return owned_by(Questionnaire, user).count()
