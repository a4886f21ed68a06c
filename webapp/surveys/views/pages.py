"""The page of a questionnaire with its tabs, which a refused act shows again."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.requests import SignedInRequest
from webapp.identity.students import provider_for_students
from webapp.surveys.forms import (
    BouncesForm,
    CohortForm,
    DeleteForm,
    NewQuestionForm,
    OpenForm,
    PeopleForm,
    QuestionForm,
    SettingsForm,
)
from webapp.surveys.models import Mail, Questionnaire
from webapp.surveys.names import look_noted
from webapp.surveys.questions import languages_of, questions_of
from webapp.surveys.selectors.answers import n_open_texts
from webapp.surveys.selectors.clashes import sorted_answers
from webapp.surveys.selectors.people import people_context
from webapp.surveys.selectors.progress import progress_of, question_states
from webapp.surveys.services.late_answers import cohorts_of
from webapp.surveys.services.translations import LANGUAGES


def show(
    request: SignedInRequest, found: Questionnaire, tab: str, *, selected: str = "", **forms: Any
) -> HttpResponse:
    """Return the page; ``forms`` are refused bound forms, by their name in the page."""
    questions = questions_of(found.content)
    selected = selected or request.GET.get("question", "")
    first = questions[0] if questions else None
    waiting, several = sorted_answers(found)
    mails = Mail.objects.filter(participant__questionnaire=found)
    context: dict[str, Any] = {
        "questionnaire": found,
        "tab": tab,
        "n_questions": len(questions),
        "states": question_states(found) if tab == "questions" else [],
        "sections": [section.title for section in found.content.sections],
        "selected": selected,
        "chosen": next((one for one in questions if one.key == selected), first),
        "progress": progress_of(found),
        "n_waiting": len(waiting),
        "n_open_texts": n_open_texts(found),
        "address": request.build_absolute_uri(reverse("surveys:code", args=[found.code])),
        "n_failed": mails.filter(state=Mail.FAILED).count(),
        "n_queued": mails.filter(state__in=(Mail.WAITING, Mail.SENDING)).count(),
        "n_mails": mails.filter(state=Mail.SENT).count(),
        "zone": request.user.own_organisation.zone.key,
    }
    if request.user.is_staff_member:
        context |= _forms(request, found, tab, selected) | forms
        if tab == "people":
            context |= people_context(found, request.GET, several, request.user)
            if context["people"]:
                look_noted(request.user, found, request.path)
    statuses = [form.status for form in forms.values() if hasattr(form, "status")]
    return render(request, "surveys/questionnaire.html", context, status=max(statuses, default=200))


def _forms(
    request: SignedInRequest, found: Questionnaire, tab: str, selected: str
) -> dict[str, Any]:
    """Return the empty forms of a tab."""
    shown: dict[str, Any] = {
        "join_cohorts": cohorts_of(found),
        "open_form": open_form(found),
        "cohort_form": CohortForm(initial={"name": found.title}, auto_id="cohort-%s"),
    }
    if tab == "settings":
        shown |= {
            "settings_form": settings_form(found),
            "delete_form": DeleteForm(auto_id="delete-%s"),
            "languages": [LANGUAGES.get(code, code) for code in languages_of(found.content)],
        }
    elif tab == "people":
        shown |= {"people_form": PeopleForm(), "bounces_form": BouncesForm(auto_id="bounces-%s")}
    elif tab == "questions":
        if not found.was_opened:
            shown["add_form"] = add_form(found)
        if any(question.key == selected for question in found.content.questions):
            shown["edit_form"] = edit_form(found, selected)
    return shown


def open_form(found: Questionnaire, request: SignedInRequest | None = None) -> OpenForm:
    """Return the form of the dates, filled from a request if there is one."""
    options: dict[str, Any] = {
        "zone": found.organisation.zone.key,
        "was_opened": found.was_opened,
        "auto_id": "open-%s",
        "initial": {
            "closes_on": timezone.localtime(found.closes_at).date() if found.closes_at else None
        },
    }
    return OpenForm.typed(request, **options) if request else OpenForm(**options)


def settings_form(found: Questionnaire, request: SignedInRequest | None = None) -> SettingsForm:
    """Return the form of the settings, filled from a request if there is one."""
    names = ("title", "introduction", "who_sees", "contact", "takes_code", "asks_sign_in")
    options: dict[str, Any] = {
        "provider": provider_for_students(found.organisation_id),
        "initial": {name: getattr(found, name) for name in names},
    }
    return SettingsForm.typed(request, **options) if request else SettingsForm(**options)


def add_form(found: Questionnaire, request: SignedInRequest | None = None) -> NewQuestionForm:
    """Return the form of a new question, filled from a request if there is one."""
    options: dict[str, Any] = {
        "content": found.content,
        "auto_id": "add-%s",
        "initial": {"version": found.version},
    }
    return NewQuestionForm.typed(request, **options) if request else NewQuestionForm(**options)


def edit_form(
    found: Questionnaire, key: str, request: SignedInRequest | None = None
) -> QuestionForm:
    """Return the form of an existing question, filled from a request if there is one."""
    options: dict[str, Any] = {
        "content": found.content,
        "key": key,
        "is_fixed": found.was_opened,
        "auto_id": "edit-%s",
        "initial": QuestionForm.values_of(found.content, key, found.version),
    }
    return QuestionForm.typed(request, **options) if request else QuestionForm(**options)
