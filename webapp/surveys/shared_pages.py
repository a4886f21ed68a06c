"""Additions of questionnaires to the rail and to the home page."""

from collections.abc import Iterable

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.selectors import owned_by
from webapp.surveys.models import Questionnaire, WrittenAnswer
from webapp.translation.lazy import gettext_lazy


def register() -> None:
    """Register the line of the rail and the next steps."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Questionnaires"),
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
            ngettext(
                "Read %(count)s text that students wrote",
                "Read %(count)s texts that students wrote",
                count,
            )
            % {"count": f"{count:,}"},
            title,
            reverse("surveys:texts", args=[key]),
            gettext("Read"),
            icon="file-text",
            tone="warning",
            order=20,
        )
