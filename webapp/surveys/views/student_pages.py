"""Shared parts of the pages of students: no account, their language, errors with a way back."""

import copy
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import languages_of, translator
from webapp.surveys.services.translations import LANGUAGES

View = Callable[..., HttpResponse]
RETRY_SECONDS = 10
_NOT_TYPED = {"csrfmiddlewaretoken", "n", "action", "sure"}


def for_students(view: View) -> View:
    """Open a view to everybody with its link, in their language, never cached."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        language = chosen_language(request)
        with translation.override(language):
            request.student_language = language  # type: ignore[attr-defined]
            response = view(request, *args, **kwargs)
        if request.GET.get("lang", "") in LANGUAGES:
            keep_language(response, language)
        response["Content-Language"] = request.student_language  # type: ignore[attr-defined]
        response["X-Robots-Tag"] = "noindex"
        return response

    opened: View = login_not_required(never_cache(wrapped))
    return opened


def keep_language(response: HttpResponse, language: str) -> None:
    """Store the chosen language in the browser."""
    response.set_cookie(
        "q-language", language, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
    )


def chosen_language(request: HttpRequest) -> str:
    """Return the language of the address, else of the cookie, else of the browser."""
    chosen = request.GET.get("lang", "") or request.COOKIES.get("q-language", "")
    if chosen in LANGUAGES:
        return chosen
    for part in request.headers.get("Accept-Language", "").split(",")[:20]:
        language = part.split(";")[0].strip().split("-")[0].lower()
        if language in LANGUAGES:
            return language
    return next(iter(settings.STUDENT_LANGUAGES))


def settle(request: HttpRequest, questionnaire: Questionnaire, known: str = "") -> str:
    """Set the time zone and language of a questionnaire's page; return the language.

    ``known`` is the language that the person chose before, which counts where neither the address
    nor a cookie names one. A language without questions and without a translation of the product is
    not used.
    """
    timezone.activate(questionnaire.organisation.zone)
    offered = offered_languages(questionnaire)
    language: str = request.student_language  # type: ignore[attr-defined]
    is_chosen = request.GET.get("lang", "") in offered or "q-language" in request.COOKIES
    if known in offered and not is_chosen:
        language = known
    if language not in offered:
        language = languages_of(questionnaire.content)[0]
    translation.activate(language)
    request.student_language = language  # type: ignore[attr-defined]
    return language


def offered_languages(questionnaire: Questionnaire | None) -> dict[str, str]:
    """Return {code: native name} of the languages that a student can choose."""
    own = languages_of(questionnaire.content) if questionnaire is not None else []
    codes = [*own, *settings.STUDENT_LANGUAGES]
    return {code: LANGUAGES.get(code, code) for code in dict.fromkeys(codes)}


def in_language(questionnaire: Questionnaire, language: str) -> Questionnaire:
    """Return the unsaved questionnaire with its title and texts in a language."""
    said = translator(questionnaire.content, language)
    shown = copy.copy(questionnaire)
    for name in ("title", "introduction", "who_sees"):
        setattr(shown, name, said(getattr(questionnaire, name)))
    return shown


def shown(request: HttpRequest, questionnaire: Questionnaire) -> Questionnaire:
    """Return the questionnaire in the language of the request."""
    return in_language(questionnaire, request.student_language)  # type: ignore[attr-defined]


def menu(questionnaire: Questionnaire | None) -> dict[str, Any]:
    """Return the context of the head of a page."""
    return {"languages": offered_languages(questionnaire)}


def is_script(request: HttpRequest) -> bool:
    """Return True if the page's script sent the request; it reads JSON and stays on the page."""
    return request.headers.get("X-Requested-With") == "fetch"


def message(
    request: HttpRequest,
    sentence: str,
    questionnaire: Questionnaire | None = None,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Return a page of one sentence, with the typed values and a link back; JSON for the script.

    ``back`` is the address to continue at, ``can_retry`` offers to send the form again.
    """
    if is_script(request):
        response: HttpResponse = JsonResponse({"error": sentence}, status=status)
    else:
        context = {
            "sentence": sentence,
            "questionnaire": shown(request, questionnaire) if questionnaire else None,
            "typed": list(typed_texts(request)),
            "path": request.path,
            "withdraw_token": get_token(request) if more.get("can_withdraw") else "",
            **menu(questionnaire),
            **more,
        }
        if more.get("can_retry"):
            context["fields"] = [("csrfmiddlewaretoken", get_token(request)), *_fields(request)]
        # Without the request, whose context reads the user from the database, which may be down.
        response = render(None, "surveys/student/message.html", context, status=status)
    if status in (429, 503, 507):
        response["Retry-After"] = str(RETRY_SECONDS)
    return response


def typed_texts(request: HttpRequest) -> Iterator[str]:
    """Yield the texts that were typed into the sent form."""
    for name, value in _fields(request):
        if name not in _NOT_TYPED and value.strip() and not value.isdecimal():
            yield value


def _fields(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yield the fields of a POST, as far as it can be read."""
    try:
        lists = list(request.POST.lists()) if request.method == "POST" else []
    except Exception:  # an unreadable body may be the reason for the error page
        return
    for name, values in lists:
        if name != "csrfmiddlewaretoken":
            yield from ((name, value.replace("\x00", "")) for value in values)


_SENTENCES = {
    400: lambda: _("Your form cannot be read. Nothing was saved. Go back and send it again."),
    403: lambda: _("This page was open for too long, so nothing was saved. Send it again."),
    404: lambda: _("There is no such page. Type the code, or paste your personal link."),
    500: lambda: _("Something failed on our side. Your answer is not saved yet. Send it again."),
    503: lambda: _("The server is busy. Your answer is not saved yet. Send it again soon."),
    507: lambda: _("The server is busy. Your answer is not saved yet. Send it again soon."),
}


def error_page(request: HttpRequest, status: int) -> HttpResponse:
    """Return a student's page for an error, in their language, without using the database.

    The form can be sent again with all typed values.
    """
    language = chosen_language(request)
    with translation.override(language):
        request.student_language = language  # type: ignore[attr-defined]
        sentence = _SENTENCES.get(status, _SENTENCES[500])()
        can_retry = request.method == "POST" and status != 404
        back = "" if status == 404 else request.get_full_path()
        response = message(request, sentence, status=status, can_retry=can_retry, back=back)
    response["Content-Language"] = language
    response["Cache-Control"] = "no-store"
    return response
