"""Staff pages of questionnaires: create, open, watch, preview and remove."""

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import administrator_required, staff_required
from webapp.common.formats import moment
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.forms import DeleteForm, NewForm
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Question, read_answer
from webapp.surveys.selectors.progress import questionnaires_of
from webapp.surveys.services import questionnaires as services
from webapp.surveys.services.answers import missing_answers
from webapp.surveys.views.pages import open_form, settings_form, show
from webapp.surveys.views.student_pages import keep_language, offered_languages
from webapp.surveys.views.walk import Walk

COPIES = 10  # the newest questionnaires that a new one may copy


@require_safe
def questionnaire_list(request: SignedInRequest) -> HttpResponse:
    """List the questionnaires of the organisation."""
    context = {"questionnaires": questionnaires_of(request.user)}
    return render(request, "surveys/list.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def new(request: SignedInRequest) -> HttpResponse:
    """Choose the title of a new questionnaire and its template."""
    found = owned_by(Questionnaire, request.user).values_list("pk", "title")
    initial = {
        "title": gettext("Housing questionnaire %(year)s") % {"year": timezone.now().year + 1},
        "form": request.GET.get("from") or "housing",
    }
    form = NewForm.typed(request, copied=list(found[:COPIES]), initial=initial)
    made: list[Questionnaire] = []
    if request.method == "POST" and form.is_valid():
        form.attempt(
            lambda: made.append(
                services.questionnaire_create(user=request.user, **form.cleaned_data)
            )
        )
    if made:
        return redirect("surveys:questionnaire", made[0].pk)
    return render(request, "surveys/new.html", {"form": form}, status=form.status)


@require_safe
def questionnaire(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a questionnaire: the progress of its people, and its questions."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    moved = {"people": "surveys:people", "settings": "surveys:settings"}
    if request.GET.get("tab") in moved and request.user.is_staff_member:
        return redirect(moved[request.GET["tab"]], found.pk)
    return show(request, found, "questions")


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def settings_page(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change the settings of a questionnaire other than its questions."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = settings_form(found, request)
    if request.method == "POST" and form.is_valid():
        fields = {"asks_sign_in": False} | form.cleaned_data
        if form.attempt(
            lambda: services.questionnaire_settle(user=request.user, questionnaire=found, **fields)
        ):
            toast(request, gettext("The settings were changed."))
            return redirect("surveys:settings", found.pk)
    return show(request, found, "settings", settings_form=form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def open_(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Open until a day, or change that day, in the organisation's time zone."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = open_form(found, request)
    if (
        request.method == "POST"
        and form.is_valid()
        and form.attempt(
            lambda: services.questionnaire_open(
                user=request.user,
                questionnaire=found,
                closes_at=form.cleaned_data["closes_on"],
                opens_at=form.cleaned_data.get("opens_at"),
            )
        )
    ):
        if found.closes_at is not None:
            toast(request, gettext("Open until %(moment)s.") % {"moment": moment(found.closes_at)})
        return redirect("surveys:questionnaire", found.pk)
    return render(
        request, "surveys/open.html", {"questionnaire": found, "form": form}, status=form.status
    )


@require_POST
@staff_required
def close(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Close a questionnaire now."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    attempt(
        request,
        lambda: services.questionnaire_close(user=request.user, questionnaire=found),
        gettext("The questionnaire is closed."),
    )
    return redirect("surveys:questionnaire", found.pk)


@require_http_methods(["GET", "POST"])
@staff_required
def preview(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Walk through a questionnaire as a student does; the answers stay in the session."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    if not found.content.questions:
        toast(request, gettext("There is no question yet."), error=True)
        return redirect("surveys:questionnaire", found.pk)
    if "again" in request.GET:
        PreviewWalk.forget(request, found)
        return redirect("surveys:preview", found.pk)
    language = request.GET.get("lang") or request.COOKIES.get("q-language", "")
    if language not in offered_languages(found):
        language = found.content.language
    with translation.override(language):
        response = PreviewWalk(request, found, language).respond()
    if request.GET.get("lang") == language:
        keep_language(response, language)
    return response


class PreviewWalk(Walk):
    """A student's walk in the preview for staff, which stores no answers."""

    is_preview = True

    def __init__(self, request: SignedInRequest, found: Questionnaire, language: str) -> None:
        self._name = self._name_of(found)
        stored = request.session.get(self._name, {})
        nobody = Participant(questionnaire=found, code="EXAMPLE", answers=stored.get("answers", {}))
        nobody.finished_at = timezone.now() if stored.get("is_finished") else None
        super().__init__(request, nobody, language)
        kept = ("next", "skip", "back", "finish")
        shown = {name: lambda: self.go("") for name in (*self.acts, "mail-link", "withdraw")}
        self.acts = shown | {name: self.acts[name] for name in kept}

    @staticmethod
    def _name_of(found: Questionnaire) -> str:
        return f"preview-{found.pk}"

    @classmethod
    def forget(cls, request: SignedInRequest, found: Questionnaire) -> None:
        """Delete the answers of the session and start again."""
        request.session.pop(cls._name_of(found), None)

    def keep(self, question: Question, *, is_declined: bool = False) -> None:
        """Store an answer in the session; for a file only its name."""
        answers = self.participant.answers
        file = self.request.FILES.get("file")
        value = {"name": file.name} if isinstance(file, UploadedFile) else None
        if question.kind is not Kind.FILE and not is_declined:
            value = read_answer(question, self.sent["answer"])
        answers.pop(question.key, None)
        if value is not None or is_declined:
            answers[question.key] = value
        self._remember()

    def finish(self) -> None:
        """Mark the answers as complete, as students do."""
        if missing_answers(self.participant, self.questions):
            raise QuestionnaireError(_("Some questions still need an answer."))
        self.participant.finished_at = timezone.now()
        self._remember()

    def _remember(self) -> None:
        self.request.session[self._name] = {
            "answers": self.participant.answers,
            "is_finished": self.participant.finished_at is not None,
        }


@require_POST
@administrator_required
def delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a questionnaire with all answers, if its title was typed."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = DeleteForm.typed(request)
    title = found.title
    if form.is_valid() and form.attempt(
        lambda: services.questionnaire_delete(
            user=request.user, questionnaire=found, typed=form.cleaned_data["name"]
        )
    ):
        toast(request, gettext("%(title)s was removed with all answers.") % {"title": title})
        return redirect("surveys:list")
    return show(request, found, "settings", delete_form=form)
