"""Staff acts on questions and sections, each at its own address."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.surveys.forms import MoveForm, PlaceForm, SectionForm, VersionForm
from webapp.surveys.models import Questionnaire
from webapp.surveys.services import questionnaires as services
from webapp.surveys.views.pages import add_form, edit_form, show


def _done(request: SignedInRequest, found: Questionnaire, key: str = "") -> HttpResponse:
    """Redirect to the questions, with Undo for the change."""
    undo = f"{reverse('surveys:undo', args=[found.pk])}?version={found.version}"
    toast(request, gettext("The questions were changed."), undo_url=undo)
    query = f"?question={key}#q-{key}" if key else ""
    return redirect(reverse("surveys:questionnaire", args=[found.pk]) + query)


def _press(
    request: SignedInRequest,
    uuid: str,
    form: VersionForm,
    act: Callable[..., object],
    selected: str = "",
    **fields: Any,
) -> HttpResponse:
    """Perform the act of a button; a refusal is a toast, since nothing was typed."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    if form.press(request, partial(act, user=request.user, questionnaire=found, **fields)):
        return _done(request, found, selected)
    query = f"?question={selected}#q-{selected}" if selected else ""
    return redirect(reverse("surveys:questionnaire", args=[found.pk]) + query)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def add(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Add a question at the end of a section."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = add_form(found, request)
    if request.method == "POST" and form.is_valid():
        act = partial(services.question_add, user=request.user, questionnaire=found)
        if form.attempt(partial(act, **form.cleaned_data)):
            return _done(request, found)
    form.show_version(found.version)
    return show(request, found, "questions", add_form=form, adds=True)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def edit(request: SignedInRequest, uuid: str, key: str) -> HttpResponse:
    """Change a question."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    if all(question.key != key for question in found.content.questions):
        raise Http404(gettext("There is no such question."))
    form = edit_form(found, key, request)
    if request.method == "POST" and form.is_valid():
        act = partial(services.question_edit, user=request.user, questionnaire=found, key=key)
        if form.attempt(partial(act, **form.cleaned_data)):
            return _done(request, found, key)
    form.show_version(found.version)
    return show(request, found, "questions", selected=key, edit_form=form)


@require_POST
@staff_required
def move(request: SignedInRequest, uuid: str, key: str) -> HttpResponse:
    """Move a question one place up or down."""
    return _press(request, uuid, MoveForm.typed(request), services.question_move, key, key=key)


@require_POST
@staff_required
def place(request: SignedInRequest, uuid: str, key: str) -> HttpResponse:
    """Move a question to a place of any section, by a button or by dragging."""
    return _press(request, uuid, PlaceForm.typed(request), services.question_place, key, key=key)


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, key: str) -> HttpResponse:
    """Remove a question."""
    return _press(request, uuid, VersionForm.typed(request), services.question_remove, key=key)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def section_add(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Add a section."""
    return _titled(request, uuid, services.section_add)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def section_rename(request: SignedInRequest, uuid: str, section: int) -> HttpResponse:
    """Rename a section."""
    return _titled(request, uuid, services.section_rename, section=section)


def _titled(
    request: SignedInRequest, uuid: str, act: Callable[..., object], **fields: Any
) -> HttpResponse:
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = SectionForm.typed(request, initial={"version": found.version}, auto_id="section-%s")
    if request.method == "POST" and form.is_valid():
        common = {"user": request.user, "questionnaire": found}
        if form.attempt(lambda: act(**common, **form.cleaned_data, **fields)):
            return _done(request, found)
    form.show_version(found.version)
    place = fields.get("section", -1)
    return show(request, found, "questions", section_form=form, titled_section=place)


@require_POST
@staff_required
def section_remove(request: SignedInRequest, uuid: str, section: int) -> HttpResponse:
    """Remove an empty section."""
    return _press(
        request, uuid, VersionForm.typed(request), services.section_remove, section=section
    )


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Undo the last change of the questions."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    version = whole_number(request.GET.get("version", "")) or 0
    attempt(
        request,
        lambda: services.change_undo(user=request.user, questionnaire=found, version=version),
        gettext("The change was taken back."),
    )
    return redirect("surveys:questionnaire", found.pk)
