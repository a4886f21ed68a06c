"""Staff acts on languages: one column of texts for each language, typed or in a file."""

from collections.abc import Callable

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.files.file_headers import as_attachment
from webapp.surveys.forms import LanguageFileForm, LanguageForm, TextsForm, VersionForm
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.translations import (
    LANGUAGES,
    MAX_FILE,
    language_set,
    read_file,
    translations_set,
    write_file,
)
from webapp.tabular.tables_out import CSV
from webapp.translation.lazy import gettext_lazy

KEPT = gettext_lazy("The languages were kept.")


def _show(request: SignedInRequest, found: Questionnaire, form: TextsForm) -> HttpResponse:
    own = found.content.language
    free = [(code, name) for code, name in LANGUAGES.items() if code not in form.languages]
    context = {
        "questionnaire": found,
        "form": form,
        "own": own,
        "own_words": LANGUAGES.get(own, own),
        "columns": [(code, LANGUAGES.get(code, code)) for code in form.languages],
        "known": free,
    }
    return render(request, "surveys/languages.html", context, status=form.status)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def languages(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the texts with one column for each language, and store the typed translations."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = TextsForm.typed(request, questionnaire=found)
    if (
        request.method == "POST"
        and form.is_valid()
        and form.attempt(
            lambda: translations_set(
                user=request.user,
                questionnaire=found,
                version=form.cleaned_data["version"],
                translations=form.translations,
            )
        )
    ):
        toast(request, KEPT)
        return redirect("surveys:languages", found.pk)
    form.show_version(found.version)
    return _show(request, found, form)


def _press(
    request: SignedInRequest,
    uuid: str,
    form: VersionForm,
    act: Callable[[Questionnaire, int], object],
) -> HttpResponse:
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    if form.is_valid():
        attempt(request, lambda: act(found, form.cleaned_data["version"]), KEPT)
    else:
        first = next(iter(form.errors.values()))[0]
        toast(request, str(first), error=True)
    return redirect("surveys:languages", found.pk)


@require_POST
@staff_required
def add(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Add a language without translations."""
    form = LanguageForm.typed(request)

    def act(found: Questionnaire, version: int) -> None:
        language = form.cleaned_data["language"]
        translations_set(
            user=request.user, questionnaire=found, version=version,
            translations={language: {found.title: ""}},
        )  # fmt: skip

    return _press(request, uuid, form, act)


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, language: str) -> HttpResponse:
    """Remove a language with its translations."""

    def act(found: Questionnaire, version: int) -> None:
        translations_set(
            user=request.user, questionnaire=found, version=version, translations={language: {}}
        )

    return _press(request, uuid, VersionForm.typed(request), act)


@require_POST
@staff_required
def own(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Set the language in which the questionnaire is written."""
    form = LanguageForm.typed(request)

    def act(found: Questionnaire, version: int) -> None:
        language_set(
            user=request.user, questionnaire=found, version=version,
            language=form.cleaned_data["language"],
        )  # fmt: skip

    return _press(request, uuid, form, act)


@require_POST
@staff_required
def read(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import the texts of a file."""
    form = LanguageFileForm.typed(request)

    def act(found: Questionnaire, version: int) -> None:
        translations = read_file(form.cleaned_data["file"].read(MAX_FILE + 1))
        translations_set(
            user=request.user, questionnaire=found, version=version, translations=translations
        )

    return _press(request, uuid, form, act)


@require_safe
@staff_required
def file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Send the texts as CSV, one column for each language."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    response = HttpResponse(write_file(found), content_type=CSV)
    return as_attachment(response, "languages.csv")
