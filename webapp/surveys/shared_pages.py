"""What questionnaires add to the rail."""

from webapp.common import hooks
from webapp.common.selectors import counter_of
from webapp.surveys.models import Questionnaire


def register() -> None:
    """Add the line of the rail."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Questionnaires",
            "clipboard-check",
            "surveys:list",
            order=5,
            count=counter_of(Questionnaire),
        )
    )
