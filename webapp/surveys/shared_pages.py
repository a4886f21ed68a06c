"""Additions of questionnaires to the rail and to the home page."""

from collections.abc import Iterable

from django.db.models import Count
from django.urls import reverse

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.selectors import owned_by
from webapp.surveys.models import Questionnaire, WrittenAnswer


def register() -> None:
    """Register the line of the rail and the next steps."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Questionnaires",
            "clipboard-check",
            "surveys:list",
            order=5,
            counted=Questionnaire,
        )
    )
    hooks.register_next_steps(next_steps)


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Yield a step for each questionnaire with written answers that staff have not handled."""
    if not user.is_staff_member:
        return
    waiting = WrittenAnswer.objects.filter(
        questionnaire__in=owned_by(Questionnaire, user), handled_at=None
    )
    counts = waiting.order_by().values_list("questionnaire").annotate(count=Count("pk"))[:3]
    number_of = dict(counts)
    titles = Questionnaire.objects.filter(pk__in=number_of).values_list("pk", "title")
    for key, title in titles:
        count = number_of[key]
        yield hooks.NextStep(
            f"Read {counted(count, 'text')} that students wrote",
            title,
            reverse("surveys:texts", args=[key]),
            "Read",
            icon="file-text",
            tone="warning",
            order=20,
        )
