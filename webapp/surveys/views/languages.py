"""Staff acts on languages: one column of texts for each language, typed, or checked in a file."""

from collections.abc import Callable

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.forms import FileAct, FileChangeForm
from webapp.cohorts.models import Draft
from webapp.cohorts.services.drafts import draft_table, draft_undo
from webapp.cohorts.student_files import MAX_LISTED, FileChoices
from webapp.cohorts.views.student_files import column_examples
from webapp.cohorts.wrong_slots import wrong_slot
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.forms import NO_ACTION
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.files.file_headers import as_attachment
from webapp.surveys.forms import (
    LanguageFileForm,
    LanguageForm,
    TextsForm,
    TranslationsUseForm,
    VersionForm,
)
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.translation_files import (
    PURPOSE,
    translation_file_assign,
    translation_file_create,
    translation_file_read,
    translation_file_use,
)
from webapp.surveys.services.translations import (
    LANGUAGES,
    language_set,
    translations_set,
    write_file,
)
from webapp.surveys.translation_files import uses_of_columns
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
        "drafts": owned_by(Draft, request.user).filter(about=found.pk, purpose=PURPOSE),
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
    """Store a file of translations as a draft, which its page shows; nothing is changed yet."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    made: list[Draft] = []

    def act(file: UploadedFile) -> None:
        made.append(
            translation_file_create(
                user=request.user,
                questionnaire=found,
                filename=file.name or "",
                size=file.size or 0,
                read=file.read,
            )
        )

    if LanguageFileForm.typed(request).press(request, act):
        return redirect(made[0].get_absolute_url())
    return redirect("surveys:languages", found.pk)


def _draft(found: Questionnaire, request: SignedInRequest, draft_uuid: str) -> Draft:
    drafts = Draft.objects.filter(about=found.pk, purpose=PURPOSE)
    return get_owned_or_404(drafts, request.user, draft_uuid)


@require_http_methods(["GET", "POST"])
@staff_required
def draft(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Show the effect of a file of translations; a POST changes how its columns are read."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    own = _draft(found, request, draft_uuid)
    if request.method == "POST":
        attempt(request, lambda: _change(request, own, found))
        return redirect(own.get_absolute_url())
    table = draft_table(own)
    read_as = translation_file_read(draft=own, questionnaire=found)
    uses = FileChoices.from_json(own.choices).uses
    context = {
        "questionnaire": found,
        "draft": own,
        "file": read_as,
        "problems": read_as.problems[:MAX_LISTED],
        "n_more_problems": max(0, len(read_as.problems) - MAX_LISTED),
        "slot": wrong_slot(request.user, table) if read_as.problems else None,
        "move_url": reverse("cohorts:draft-move", args=[own.pk]),
        "notes": read_as.notes[:MAX_LISTED],
        "n_more_notes": max(0, len(read_as.notes) - MAX_LISTED),
        "uses": list(uses_of_columns(found).items()),
        "columns": [
            (k, name, use, column_examples(table, k))
            for k, (name, use) in enumerate(zip(table.header, uses, strict=True))
        ],
    }
    return render(request, "surveys/languages_draft.html", context)


def _change(request: SignedInRequest, own: Draft, found: Questionnaire) -> None:
    form = FileChangeForm.typed(request)
    form.check()
    sent, action = form.cleaned_data, form.cleaned_data["action"] or FileAct.USE
    if action is FileAct.UNDO:
        draft_undo(draft=own, version=form.seen)
    elif action is FileAct.USE:
        column, use = sent["column"], sent["use"]
        translation_file_assign(
            draft=own, questionnaire=found, column=column, use=use, version=form.seen
        )
    else:
        raise Refusal(NO_ACTION)


@require_POST
@staff_required
def draft_use(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Use the texts of a checked file, or nothing and show one sentence."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    own = _draft(found, request, draft_uuid)
    done: list[str] = []

    def act(version: int, shown: int) -> None:
        done.append(
            translation_file_use(
                user=request.user, draft=own, questionnaire=found, version=version, shown=shown
            )
        )

    if not TranslationsUseForm.typed(request).press(request, act):
        return redirect(own.get_absolute_url())
    undo = reverse("surveys:undo", args=[found.pk]) + f"?version={found.version}"
    toast(request, done[0], undo_url=undo)
    return redirect("surveys:languages", found.pk)


@require_safe
@staff_required
def file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Send the texts as CSV, one column for each language."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    response = HttpResponse(write_file(found), content_type=CSV)
    return as_attachment(response, "languages.csv")
