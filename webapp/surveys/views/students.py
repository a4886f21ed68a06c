"""The pages of students: no account, one question a screen, saved as they go."""

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.common.parameters import whole_number
from webapp.identity.selectors import login_address
from webapp.identity.students import provider_for_students, signed_in_student
from webapp.surveys import limits
from webapp.surveys.links import participant_of, token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import (
    Kind,
    Question,
    QuestionnaireError,
    languages_of,
    questions_of,
    translator,
)
from webapp.surveys.services.answers import (
    answer_save,
    answers_finish,
    missing_consent,
    participant_begin,
    participant_of_student,
    participant_opened,
)
from webapp.surveys.services.translations import LANGUAGES
from webapp.surveys.services.withdrawals import answers_withdraw

View = Callable[..., HttpResponse]


def for_students(view: View) -> View:
    """Open a page to everybody who has its link, in the language they chose, never cached."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        asked = request.GET.get("lang", "")
        chosen = asked or request.COOKIES.get("q-language", "")
        language = chosen if chosen in LANGUAGES else _accepted(request)
        with translation.override(language):
            request.student_language = language  # type: ignore[attr-defined]
            response = view(request, *args, **kwargs)
        if asked in LANGUAGES:
            response.set_cookie("q-language", language, samesite="Lax", httponly=True)
        response["Content-Language"] = request.student_language  # type: ignore[attr-defined]
        response["X-Robots-Tag"] = "noindex"
        return response

    opened: View = login_not_required(never_cache(wrapped))
    return opened


def _accepted(request: HttpRequest) -> str:
    for part in request.headers.get("Accept-Language", "").split(",")[:20]:
        language = part.split(";")[0].strip().split("-")[0].lower()
        if language in LANGUAGES:
            return language
    return next(iter(dict(settings.LANGUAGES)))


def in_language(questionnaire: Questionnaire, language: str) -> Questionnaire:
    """Return the questionnaire with what stands around the questions in a language; not to save."""
    said = translator(questionnaire.content, language)
    shown = copy.copy(questionnaire)
    for name in ("title", "introduction", "who_sees"):
        setattr(shown, name, said(getattr(questionnaire, name)))
    return shown


def _settle(request: HttpRequest, questionnaire: Questionnaire) -> str:
    """Choose zone and language of a questionnaire's page; return the language.

    A language in which there is neither a question nor a word of ours is none to answer in.
    """
    timezone.activate(questionnaire.organisation.zone)
    offered = offered_languages(questionnaire)
    language: str = request.student_language  # type: ignore[attr-defined]
    if language not in offered:
        language = languages_of(questionnaire.content)[0]
        translation.activate(language)
        request.student_language = language  # type: ignore[attr-defined]
    return language


def offered_languages(questionnaire: Questionnaire | None) -> dict[str, str]:
    """Return {code: its own name} of what a student can choose."""
    own = languages_of(questionnaire.content) if questionnaire is not None else []
    codes = [*own, *dict(settings.LANGUAGES)]
    return {code: LANGUAGES.get(code, code) for code in dict.fromkeys(codes)}


@require_http_methods(["GET", "POST"])
@for_students
def enter(request: HttpRequest) -> HttpResponse:
    """Take the code of a questionnaire."""
    if request.method == "POST":
        code = "".join(request.POST.get("code", "").upper().split())[:12]
        return redirect("surveys:code", code) if code else redirect("surveys:enter")
    return render(request, "surveys/student/enter.html", _menu(None))


@require_http_methods(["GET", "POST"])
@for_students
def code(request: HttpRequest, code: str) -> HttpResponse:
    """Tell what a questionnaire is about, and begin it."""
    if limits.is_over(request, "wrong", limits.WRONG_CODES, count=False):
        return _message(request, _("Too many tries. Wait ten minutes."), status=429)
    found = Questionnaire.objects.filter(code=code.upper()).first()
    if found is not None and not (found.takes_code or found.asks_sign_in):
        found = None
    if found is None or not found.was_opened:
        limits.is_over(request, "wrong", limits.WRONG_CODES)
        return _message(request, _("There is no questionnaire with this code."), status=404)
    _settle(request, found)
    if found.is_closed:
        return _closed(request, found)
    if found.asks_sign_in:
        return _signed_in(request, found)
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
    context = {"questionnaire": _shown(request, found), "error": error, **_menu(found)}
    return render(request, "surveys/student/begin.html", context, status=422 if error else 200)


def _signed_in(request: HttpRequest, found: Questionnaire) -> HttpResponse:
    """Begin, or go on, as who the organisation's provider says; send others there first."""
    provider = provider_for_students(found.organisation_id)
    student = signed_in_student(request)
    if student is not None and student.organisation_id == found.organisation_id:
        if request.method == "POST":
            made = participant_of_student(questionnaire=found, student=student)
            return redirect("surveys:answer", token_of(made))
        there = ""
    elif provider is None:
        return _message(request, _("Signing in is not possible now."), found, status=503)
    else:
        there = login_address(provider, reverse("surveys:code", args=[found.code]))
    context = {"questionnaire": _shown(request, found), "provider": provider, "there": there}
    return render(request, "surveys/student/begin.html", context | _menu(found))


def _shown(request: HttpRequest, questionnaire: Questionnaire) -> Questionnaire:
    return in_language(questionnaire, request.student_language)  # type: ignore[attr-defined]


def _menu(questionnaire: Questionnaire | None) -> dict[str, Any]:
    return {"languages": offered_languages(questionnaire)}


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
    language = _settle(request, questionnaire)
    is_own = not questionnaire.asks_sign_in or _is_own(request, participant)
    if questionnaire.is_closed:
        if is_own and request.method == "POST" and _withdraws(request):
            return _withdrawn(request, participant)
        return _closed(request, questionnaire, can_withdraw=is_own)
    if not is_own:
        return redirect("surveys:code", questionnaire.code)
    if not questionnaire.was_opened:
        return _message(request, _("This questionnaire is not open yet."), questionnaire)
    questions = questions_of(questionnaire.content, language)
    if request.method == "POST":
        return _posted(request, participant, questions, token)
    asked = request.GET.get("lang", "")  # nonsense was answered in a language that we have
    participant_opened(participant, asked if asked == language else "")
    participant.questionnaire = in_language(questionnaire, language)
    number = whole_number(request.GET.get("n", ""))
    if number is None:
        number = next(
            (q.number for q in questions if q.key not in participant.answers), len(questions) + 1
        )
    if number > len(questions):
        return _last(request, participant, questions)
    return render_question(request, participant, questions, max(1, number))


def _is_own(request: HttpRequest, participant: Participant) -> bool:
    """Whether the link is that of who signed in: where that is asked for, none opens by itself."""
    student = signed_in_student(request)
    return student is not None and participant.subject == student.subject


def _posted(
    request: HttpRequest, participant: Participant, questions: list[Question], token: str
) -> HttpResponse:
    action = request.POST.get("action", "next")
    here = reverse("surveys:answer", args=[token])
    is_over = limits.is_over(request, "save", limits.SAVES)
    if is_over or limits.is_over_for_one(participant.pk):
        return _message(request, _("Too many tries. Wait ten minutes."), status=429)
    if _withdraws(request):
        return _withdrawn(request, participant)
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
        lacking = missing_consent(participant, questions) if action == "finish" else None
        asked_for = lacking.number if lacking else whole_number(request.POST.get("n", ""))
        number = asked_for or len(questions) + 1
        if number > len(questions):
            return _last(request, participant, questions, error=str(problem))
        return render_question(request, participant, questions, number, error=str(problem))
    if request.headers.get("X-Requested-With") == "fetch":
        return HttpResponse(status=204)
    return HttpResponseRedirect(f"{here}?n={number + 1}")


def _withdraws(request: HttpRequest) -> bool:
    post = request.POST
    return post.get("action") == "withdraw" and post.get("sure") == "yes"


def _withdrawn(request: HttpRequest, participant: Participant) -> HttpResponse:
    questionnaire = participant.questionnaire
    try:
        was_copied = answers_withdraw(participant=participant)
    except QuestionnaireError as problem:  # in another tab, a moment ago
        return _message(request, str(problem), questionnaire, status=404)
    sentence = _("Your answers were deleted.")
    if was_copied:
        sentence = _(
            "Your answers were deleted, also where rooms are planned with them. A room that was "
            "published for you stays yours until your housing office changes it."
        )
    return _message(request, sentence, questionnaire)


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
        **_menu(participant.questionnaire),
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
        **_menu(participant.questionnaire),
        "shows_code": any(q.kind is Kind.REQUEST for q in questions),
        "error": error,
    }
    return render(request, "surveys/student/last.html", context, status=422 if error else 200)


def _closed(
    request: HttpRequest, questionnaire: Questionnaire, *, can_withdraw: bool = False
) -> HttpResponse:
    sentence = _("This questionnaire is closed.")
    return _message(request, sentence, questionnaire, status=410, can_withdraw=can_withdraw)


def _message(
    request: HttpRequest,
    sentence: str,
    questionnaire: Questionnaire | None = None,
    *,
    status: int = 200,
    can_withdraw: bool = False,
) -> HttpResponse:
    shown = None if questionnaire is None else _shown(request, questionnaire)
    context = {
        "sentence": sentence,
        "questionnaire": shown,
        "can_withdraw": can_withdraw,
        **_menu(questionnaire),
    }
    return render(request, "surveys/student/message.html", context, status=status)
