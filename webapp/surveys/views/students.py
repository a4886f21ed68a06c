"""The pages of students: no account, one question a screen, saved as they go."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.common.parameters import whole_number
from webapp.surveys import limits
from webapp.surveys.links import participant_of, token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Kind, Question, QuestionnaireError, questions_of
from webapp.surveys.services.answers import (
    answer_save,
    answers_finish,
    answers_withdraw,
    participant_begin,
    participant_opened,
)

View = Callable[..., HttpResponse]


def for_students(view: View) -> View:
    """Open a page to everybody who has its link, in the language they chose, never cached."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        chosen = request.GET.get("lang") or request.COOKIES.get("q-language", "")
        known = dict(settings.LANGUAGES)
        language = chosen if chosen in known else _accepted(request, known)
        with translation.override(language):
            request.student_language = language  # type: ignore[attr-defined]
            response = view(request, *args, **kwargs)
        if request.GET.get("lang") in known:
            response.set_cookie("q-language", language, samesite="Lax", httponly=True)
        response["Content-Language"] = language
        response["X-Robots-Tag"] = "noindex"
        return response

    opened: View = login_not_required(never_cache(wrapped))
    return opened


def _accepted(request: HttpRequest, known: dict[str, str]) -> str:
    for part in request.headers.get("Accept-Language", "").split(","):
        language = part.split(";")[0].strip().split("-")[0].lower()
        if language in known:
            return language
    return next(iter(known))


@require_http_methods(["GET", "POST"])
@for_students
def enter(request: HttpRequest) -> HttpResponse:
    """Take the code of a questionnaire."""
    if request.method == "POST":
        code = "".join(request.POST.get("code", "").upper().split())[:12]
        return redirect("surveys:code", code) if code else redirect("surveys:enter")
    return render(request, "surveys/student/enter.html", {})


@require_http_methods(["GET", "POST"])
@for_students
def code(request: HttpRequest, code: str) -> HttpResponse:
    """Tell what a questionnaire is about, and begin it."""
    if limits.is_over(request, "wrong", limits.WRONG_CODES, count=False):
        return _message(request, _("Too many tries. Wait ten minutes."), status=429)
    found = Questionnaire.objects.filter(code=code.upper(), takes_code=True).first()
    if found is None or not found.was_opened:
        limits.is_over(request, "wrong", limits.WRONG_CODES)
        return _message(request, _("There is no questionnaire with this code."), status=404)
    if found.is_closed:
        return _closed(request, found)
    error = ""
    if request.method == "POST":
        if limits.is_over(request, "start", limits.STARTS):
            return _message(request, _("Too many tries. Wait ten minutes."), status=429)
        try:
            made = participant_begin(
                questionnaire=found, identifier=request.POST.get("identifier", "")
            )
            return redirect("surveys:answer", token_of(made))
        except QuestionnaireError:
            error = _("Type your student number.")
    context = {"questionnaire": found, "error": error, "asks_identifier": True}
    return render(request, "surveys/student/begin.html", context, status=422 if error else 200)


@require_http_methods(["GET", "POST"])
@for_students
def answer(request: HttpRequest, token: str) -> HttpResponse:
    """Show one question, keep its answer, go on to the next; the last page finishes."""
    participant = participant_of(token)
    if participant is None:
        if limits.is_over(request, "wrong", limits.WRONG_CODES):
            return _message(request, _("Too many tries. Wait ten minutes."), status=429)
        return _message(request, _("This link is not valid any more."), status=404)
    questionnaire = participant.questionnaire
    if questionnaire.is_closed:
        return _closed(request, questionnaire)
    if not questionnaire.was_opened:
        return _message(request, _("This questionnaire is not open yet."), questionnaire)
    questions = questions_of(questionnaire.content)
    if request.method == "POST":
        return _posted(request, participant, questions, token)
    asked = request.GET.get("lang", "")  # nonsense was answered in a language that we have
    participant_opened(participant, asked if asked == request.student_language else "")
    number = whole_number(request.GET.get("n", ""))
    if number is None:
        number = next(
            (q.number for q in questions if q.key not in participant.answers), len(questions) + 1
        )
    if number > len(questions):
        return _last(request, participant, questions)
    return render_question(request, participant, questions, max(1, number))


def _posted(
    request: HttpRequest, participant: Participant, questions: list[Question], token: str
) -> HttpResponse:
    action = request.POST.get("action", "next")
    here = reverse("surveys:answer", args=[token])
    if limits.is_over(request, "save", limits.SAVES):
        return _message(request, _("Too many tries. Wait ten minutes."), status=429)
    if action == "withdraw" and request.POST.get("sure") == "yes":
        questionnaire = participant.questionnaire
        answers_withdraw(participant=participant)
        return _message(request, _("Your answers were deleted."), questionnaire)
    try:
        if action == "finish":
            answers_finish(participant=participant)
            return HttpResponseRedirect(f"{here}?n={len(questions) + 1}")
        number = whole_number(request.POST.get("n", "")) or 0
        if not 1 <= number <= len(questions):
            return HttpResponseRedirect(here)
        question = questions[number - 1]
        if action == "skip":
            answer_save(participant=participant, question=question, values=[])
        elif action == "back":
            return HttpResponseRedirect(f"{here}?n={max(1, number - 1)}")
        else:
            values = request.POST.getlist("answer")
            answer_save(participant=participant, question=question, values=values)
    except QuestionnaireError as problem:
        number = whole_number(request.POST.get("n", "")) or len(questions) + 1
        if number > len(questions):
            return _last(request, participant, questions, error=str(problem))
        return render_question(request, participant, questions, number, error=str(problem))
    if request.headers.get("X-Requested-With") == "fetch":
        return HttpResponse(status=204)
    return HttpResponseRedirect(f"{here}?n={number + 1}")


def render_question(
    request: HttpRequest,
    participant: Participant,
    questions: list[Question],
    number: int,
    *,
    error: str = "",
    is_preview: bool = False,
) -> HttpResponse:
    """Return the page of one question."""
    question = questions[number - 1]
    value = participant.answers.get(question.key)
    chosen = value if isinstance(value, list) else [value]
    context = {
        "questionnaire": participant.questionnaire,
        "participant": participant,
        "question": question,
        "options": [(k, option, k in chosen) for k, option in enumerate(question.options)],
        "value": "" if value is None else value,
        "is_skipped": question.key in participant.answers and value is None,
        "is_saved": question.key in participant.answers,
        "n_questions": len(questions),
        "sections": _sections(questions, number),
        "shows_who": number == 1 or question.is_rule or question.kind is Kind.TEXT,
        "error": error,
        "is_preview": is_preview,
    }
    return render(request, "surveys/student/question.html", context, status=422 if error else 200)


def _sections(questions: list[Question], number: int) -> list[tuple[str, int, int]]:
    """Return [(section, questions in it, those of them that are behind)] for the progress line."""
    titles = list(dict.fromkeys(question.section for question in questions))
    found = []
    for title in titles:
        own = [question.number for question in questions if question.section == title]
        found.append((title, len(own), sum(k <= number for k in own)))
    return found


def _last(
    request: HttpRequest, participant: Participant, questions: list[Question], *, error: str = ""
) -> HttpResponse:
    context = {
        "questionnaire": participant.questionnaire,
        "participant": participant,
        "blank": [q for q in questions if participant.answers.get(q.key) is None],
        "n_questions": len(questions),
        "shows_code": any(q.kind is Kind.REQUEST for q in questions),
        "error": error,
    }
    return render(request, "surveys/student/last.html", context, status=422 if error else 200)


def _closed(request: HttpRequest, questionnaire: Questionnaire) -> HttpResponse:
    return _message(request, _("This questionnaire is closed."), questionnaire, status=410)


def _message(
    request: HttpRequest,
    sentence: str,
    questionnaire: Questionnaire | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {"sentence": sentence, "questionnaire": questionnaire}
    return render(request, "surveys/student/message.html", context, status=status)
