"""Pages of students: no account, one question a screen, saved at each step."""

import re
from typing import Any
from urllib.parse import unquote

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from webapp.common.limits import count_up
from webapp.identity.link_cookies import TRIED
from webapp.identity.selectors import login_address
from webapp.identity.students import provider_for_students, signed_in_student
from webapp.surveys import limits, visits
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.links import participant_of, token_of
from webapp.surveys.mails import own_address, participant_of_stop
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import plain_code
from webapp.surveys.services.answers import (
    participant_begin,
    participant_of_student,
    participant_opened,
)
from webapp.surveys.services.invitations import mails_stop
from webapp.surveys.services.links import checked_address, link_to_address, links_to_participants
from webapp.surveys.services.withdrawals import answers_withdraw
from webapp.surveys.student_forms import BeginForm, EnterForm, StepForm, StudentForm
from webapp.surveys.views.student_pages import for_students, menu, message, settle, shown
from webapp.surveys.views.walk import Walk

_IN_LINK = re.compile(r"/q/(?:code/)?([\w.~-]+)")
_TOKEN = re.compile(r"\d+\.[\w-]+~[\w-]+~[\w-]+")


@csrf_exempt  # it only redirects to an address, and works without cookies
@require_http_methods(["GET", "POST"])
@for_students
def enter(request: HttpRequest) -> HttpResponse:
    """Accept the code of a questionnaire, or a pasted personal link."""
    if request.method != "POST":
        return _enter(request)
    typed = str(EnterForm.typed(request)["code"].value() or "")
    text = unquote("".join(typed.split()))
    token = _TOKEN.search(text)
    if token:
        return redirect("surveys:answer", token.group())
    link = _IN_LINK.search(text)
    code = plain_code(link.group(1) if link else text)
    if not code:
        return _enter(request, typed=typed, error=_("Type the code, or paste your personal link."))
    return redirect("surveys:code", code)


def _enter(
    request: HttpRequest, *, typed: str = "", error: str = "", status: int = 422
) -> HttpResponse:
    context = {"typed_code": typed, "error": error, **menu(None)}
    page = "surveys/student/enter.html"
    return render(request, page, context, status=status if error else 200)


@csrf_exempt  # beginning needs no cookie; signing in is checked below
@require_http_methods(["GET", "POST"])
@for_students
def code(request: HttpRequest, code: str) -> HttpResponse:
    """Show the introduction of a questionnaire, and begin it."""
    plain = plain_code(code)
    found = Questionnaire.objects.select_related("organisation").filter(code=plain).first()
    if found is not None and not (found.takes_code or found.asks_sign_in):
        found = None
    if not plain or found is None or not found.was_opened:
        return _wrong_code(request, plain)
    settle(request, found)
    if found.is_closed:
        return _closed(request, found)
    if found.asks_sign_in:
        return csrf_protect(lambda request: _signed_in(request, found))(request)
    error = typed = ""
    if request.method == "POST":
        if limits.is_over(request, "start", limits.STARTS):
            return _too_many(request)
        form = BeginForm.typed(request)
        if form.typed_in("action") == "mail-link":
            return _mail_links(request, found, form.typed_in("email"))
        if form.typed_in("action"):
            raise BadRequest
        typed = form.typed_in("identifier")
        try:
            made = participant_begin(questionnaire=found, identifier=typed)
            return _begun(request, made)
        except QuestionnaireError:
            error = _("Type your student number.")
    return _begin(request, found, error=error, typed_number=typed)


def _begin(
    request: HttpRequest, found: Questionnaire, *, error: str = "", **more: Any
) -> HttpResponse:
    context = {"questionnaire": shown(request, found), "error": error}
    status = 422 if error or more.get("mail_error") else 200
    page = "surveys/student/begin.html"
    return render(request, page, context | menu(found) | more, status=status)


def _mail_links(request: HttpRequest, found: Questionnaire, typed: str) -> HttpResponse:
    """Mail the link to the participants with an address; the response is always the same."""
    try:
        address = checked_address(typed)
    except QuestionnaireError as problem:
        return _begin(request, found, mail_error=str(problem), typed_email=typed)
    if count_up("surveys:mail-link", address, window=3600) <= limits.LINKS_OF_ONE:
        links_to_participants(questionnaire=found, address=address, base=own_address(request))
    sentence = _(
        "If %(address)s was invited to this questionnaire, the link is on its way. Check the spam "
        "folder too."
    ) % {"address": address}
    return message(request, sentence, found, back=request.path)


def _wrong_code(request: HttpRequest, code: str) -> HttpResponse:
    """Show the field again with the code; many wrong codes never block a right one."""
    if limits.is_over(request, "wrong", limits.WRONG_CODES):
        return _too_many(request)
    if Participant.objects.filter(code=code).exists():
        error = _(
            "This is a student's own code, for roommate requests. The code of the questionnaire is "
            "in the mail or on the poster of your housing office."
        )
    else:
        error = _(
            "There is no questionnaire with this code. Compare it with the mail or the poster of "
            "your housing office."
        )
    return _enter(request, typed=code, error=error, status=404)


def _wrong(request: HttpRequest, sentence: str) -> HttpResponse:
    """Answer a wrong link; many wrong links from one address never block a right one."""
    if limits.is_over(request, "wrong", limits.WRONG_CODES):
        return _too_many(request)
    return message(request, sentence, status=404)


def _too_many(request: HttpRequest) -> HttpResponse:
    sentence = _("Too many tries. Wait ten minutes.")
    can_retry = request.method == "POST"
    return message(request, sentence, status=429, can_retry=can_retry, back=request.get_full_path())


def _begun(request: HttpRequest, participant: Participant) -> HttpResponse:
    step = {} if participant.answers else {"n": "1"}
    entered = visits.enter(request, participant, **step)
    return entered or redirect("surveys:answer", token_of(participant))


def _signed_in(request: HttpRequest, found: Questionnaire) -> HttpResponse:
    """Begin or continue as the signed-in student; send others to the provider first."""
    provider = provider_for_students(found.organisation_id)
    student = signed_in_student(request)
    if student is not None and student.organisation_id == found.organisation_id:
        if request.method == "POST":
            made = participant_of_student(questionnaire=found, student=student)
            return _begun(request, made)
        there = ""
    elif provider is None:
        return message(request, _("Signing in is not possible now."), found, status=503)
    else:
        there = login_address(provider, reverse("surveys:code", args=[found.code]))
    return _begin(request, found, provider=provider, there=there)


@csrf_exempt  # the token in the address is the proof; without it no form can be sent
@require_http_methods(["GET", "POST"])
@for_students
def answer(request: HttpRequest, token: str) -> HttpResponse:
    """Exchange a personal link for a cookie; without cookies, answer at its own address."""
    participant = participant_of(token)
    if participant is None:
        return _wrong(request, _("This link is not valid any more."))
    entered = visits.enter(request, participant) if request.method == "GET" else None
    response = entered or _answers(request, participant)
    response["Referrer-Policy"] = "no-referrer"  # keep the address from the page's resources
    return response


@require_http_methods(["GET", "POST"])
@for_students
def mine(request: HttpRequest, handle: str) -> HttpResponse:
    """Answer at an address without a token: the browser stores the link."""
    participant = visits.visitor_of(request, handle)
    if participant is None:
        sentence = _("This browser does not remember your link. Open your personal link again.")
        return message(request, sentence, status=404)
    return _answers(request, participant)


@csrf_exempt  # mail programs send it by one click, without any cookie (RFC 8058)
@require_http_methods(["GET", "POST"])
@for_students
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """Stop the mails to a participant, or resume them; opening the page changes nothing."""
    participant = participant_of_stop(token)
    if participant is None:
        return _wrong(request, _("This link is not valid any more."))
    questionnaire = participant.questionnaire
    settle(request, questionnaire, participant.language)
    if request.method == "POST":
        action = StudentForm.typed(request).typed_in("action")  # a mail program sends none
        if action not in ("", "stop", "again"):
            raise BadRequest
        mails_stop(participant=participant, stops=action != "again")
        participant.refresh_from_db(fields=["unsubscribed_at"])
    context = {"questionnaire": shown(request, questionnaire), "participant": participant}
    return render(request, "surveys/student/stop.html", context | menu(questionnaire))


def _answers(request: HttpRequest, participant: Participant) -> HttpResponse:
    """Show one step, store the sent answer, go to the next step; the last one is a receipt."""
    questionnaire = participant.questionnaire
    language = settle(request, questionnaire, participant.language)
    is_own = not questionnaire.asks_sign_in or _is_own(request, participant)
    if questionnaire.is_closed:
        if is_own and request.method == "POST" and _withdraws(request):
            return _withdrawn(request, participant)
        return _closed(request, questionnaire, can_withdraw=is_own)
    if not is_own:
        there = reverse("surveys:code", args=[questionnaire.code])
        if request.method != "POST":
            return redirect(there)
        sentence = _("You were signed out, so nothing was saved. Sign in and send it again.")
        return message(request, sentence, questionnaire, status=401, back=there)
    if not questionnaire.was_opened:
        sentence = _("This questionnaire is not open yet.")
        return message(request, sentence, questionnaire, status=404)
    if request.method == "POST":
        is_over = limits.is_over(request, "save", limits.SAVES)
        if is_over or limits.is_over_for_one(participant.pk):
            return _too_many(request)
        if _withdraws(request):
            return _withdrawn(request, participant)
    else:
        asked = request.GET.get("lang", "")  # an invalid language was replaced by an available one
        participant_opened(participant, asked if asked == language else "")
    return StudentWalk(request, participant, language).respond()


class StudentWalk(Walk):
    """A participant's walk through a questionnaire, with their link on the receipt."""

    kept = (TRIED,)

    def __init__(self, request: HttpRequest, participant: Participant, language: str) -> None:
        super().__init__(request, participant, language)
        self.acts["mail-link"] = self._mail_link
        self.acts["withdraw"] = lambda: self.go("")  # its box was not ticked

    def link_context(self) -> dict[str, Any]:
        """Return the personal link, and the address to which it can be mailed."""
        own = reverse("surveys:answer", args=[token_of(self.participant)])
        link = f"{own_address(self.request)}{own}"
        return {"link": link, "address": self.participant.email}

    def _mail_link(self) -> HttpResponse:
        """Mail the link to the person's own address, or to one that they type."""
        typed = self.sent["email"]
        try:
            address = self.participant.email or checked_address(typed)
            tries = count_up("surveys:mail-own", str(self.participant.pk), window=86400)
            if tries > limits.LINKS_OF_ONE:
                raise QuestionnaireError(
                    _("We mailed the link several times today. Try again tomorrow.")
                )
            link_to_address(
                participant=self.participant, address=address, base=own_address(self.request),
                language=self.language,
            )  # fmt: skip
        except QuestionnaireError as problem:
            return self._show_link(error=str(problem))
        return self._show_link(
            note=_("The link is on its way to %(address)s.") % {"address": address}
        )

    def _show_link(self, **words: str) -> HttpResponse:
        return self.receipt(**words) if self.participant.finished_at else self.review(**words)


def _is_own(request: HttpRequest, participant: Participant) -> bool:
    """Return True if the link belongs to the signed-in student, as sign-in requires."""
    student = signed_in_student(request)
    return student is not None and participant.subject == student.subject


def _withdraws(request: HttpRequest) -> bool:
    form = StepForm.typed(request)
    return form.typed_in("action") == "withdraw" and form.typed_in("sure") == "yes"


def _withdrawn(request: HttpRequest, participant: Participant) -> HttpResponse:
    questionnaire = participant.questionnaire
    try:
        was_copied = answers_withdraw(participant=participant)
    except QuestionnaireError as problem:  # deleted in another tab a moment ago
        return message(request, str(problem), questionnaire, status=404)
    sentence = _("Your answers were deleted.")
    if was_copied:
        sentence = _(
            "Your answers were deleted, also where rooms are planned with them. A room that was "
            "published for you stays yours until your housing office changes it."
        )
    response = message(request, sentence, questionnaire)
    visits.leave(response, participant)
    return response


def _closed(
    request: HttpRequest, questionnaire: Questionnaire, *, can_withdraw: bool = False
) -> HttpResponse:
    sentence = _("This questionnaire is closed.")
    if request.method == "POST":
        sentence = _("This questionnaire is closed. Your last answer was not saved.")
    return message(request, sentence, questionnaire, status=410, can_withdraw=can_withdraw)
