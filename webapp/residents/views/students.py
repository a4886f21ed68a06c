"""The personal page of a student: no account, but a link, or a sign-in at the provider."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.models import Organisation
from webapp.common.forms import TypedForm
from webapp.common.limits import count_up
from webapp.identity.selectors import login_address
from webapp.identity.students import provider_for_students, signed_in_student
from webapp.residents import links, services
from webapp.residents.forms import AskForm, ContactForm
from webapp.residents.models import MAX_CONTACT, ResidentPage
from webapp.residents.page_parts import parts_of
from webapp.residents.selectors import home_of, organisation_of, page_student
from webapp.surveys import limits
from webapp.surveys.views.student_pages import for_students, menu, message
from webapp.surveys.views.students import answer as answer_questionnaire

SAVES_OF_ONE = 60  # acts on one page in ten minutes


def settle(request: HttpRequest, organisation: Organisation) -> None:
    """Set the time zone, and a language that the product is translated into."""
    timezone.activate(organisation.zone)
    language: str = request.student_language  # type: ignore[attr-defined]
    if language not in settings.STUDENT_LANGUAGES:
        language = next(iter(settings.STUDENT_LANGUAGES))
    translation.activate(language)
    request.student_language = language  # type: ignore[attr-defined]


def _show(
    request: HttpRequest,
    page: ResidentPage,
    *,
    ask: AskForm | None = None,
    contact: ContactForm | None = None,
) -> HttpResponse:
    """Return the page, with a refused form as it was typed."""
    settle(request, organisation_of(page))
    found = home_of(page)
    context = {
        "organisation": organisation_of(page),
        "handle": links.handle_of(page),
        "home": found,
        "parts": parts_of(page),
        "page": page,
        "ask_form": ask or AskForm(),
        "contact_form": contact,
        "typed_roommate": str(contact["roommate"].value()) if contact else "",
        "max_contact": MAX_CONTACT,
        **menu(None),
    }
    bound = ask or contact
    status = bound.status if bound is not None else 200
    return render(request, "residents/student/home.html", context, status=status)


@csrf_exempt  # it only exchanges a link for a cookie; links of questionnaires work without one
@require_http_methods(["GET", "POST"])
@for_students
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Exchange a personal link for a cookie."""
    page = links.page_of_token(token)
    if page is None:
        return answer_questionnaire(request, token)  # a wrong link, or one that looks like ours
    settle(request, organisation_of(page))
    response = links.enter(request, page) or message(
        request, _("This browser takes no cookies. Allow them, and open your link again.")
    )
    response["Referrer-Policy"] = "no-referrer"  # keep the address from the page's resources
    return response


@require_safe
@for_students
def sign_in(request: HttpRequest, code: str) -> HttpResponse:
    """Open the page of the student whom the organisation's provider vouches for."""
    organisation = Organisation.objects.filter(sign_in_code=code).first()
    provider = provider_for_students(organisation.pk) if organisation is not None else None
    if organisation is None or provider is None:
        if limits.is_over(request, "wrong", limits.WRONG_CODES):
            return message(request, _("Too many tries. Wait ten minutes."), status=429)
        sentence = _("Signing in is not possible here. Open your personal link.")
        return message(request, sentence, status=404)
    settle(request, organisation)
    signed_in = signed_in_student(request)
    if signed_in is None or signed_in.organisation_id != organisation.pk:
        return redirect(login_address(provider, request.path))
    student = page_student(organisation, signed_in)
    if student is None:
        return message(request, _("No room is published for you yet. Come back later."))
    entered = links.enter(request, links.page_of(student))
    return entered or message(
        request, _("This browser takes no cookies. Allow them, and open your link again.")
    )


def visitor_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Pass the page that the browser's cookie opens, or answer that there is none."""

    @wraps(view)
    def wrapped(request: HttpRequest, handle: str, **options: int) -> HttpResponse:
        page = links.visitor_of(request, handle)
        if page is None:
            sentence = _("This browser does not remember your link. Open your personal link again.")
            return message(request, sentence, status=404)
        settle(request, organisation_of(page))
        if request.method == "POST" and _is_over(request, page):
            return message(
                request, _("Too many tries. Wait ten minutes."), status=429, can_retry=True
            )
        return view(request, page, **options)

    return wrapped


def _is_over(request: HttpRequest, page: ResidentPage) -> bool:
    is_over = limits.is_over(request, "save", limits.SAVES)
    return is_over or count_up("residents:one", str(page.pk), window=600) > SAVES_OF_ONE


def _done(page: ResidentPage, part: str) -> HttpResponse:
    return redirect(f"{reverse('residents:home', args=[links.handle_of(page)])}#{part}")


@require_safe
@for_students
@visitor_only
def home(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Show room, roommates, requests and changes."""
    return _show(request, page)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def contact(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Agree that a roommate sees one's contact, or take that back."""
    if request.method != "POST":
        return _done(page, "roommates")
    form = ContactForm.typed(request)

    def act(*, roommate: int, shares: bool, contact: str) -> None:
        services.contact_share(page=page, number=roommate, shares=shares, contact=contact)

    if form.submit(request, act):
        return _done(page, "roommates")
    return _show(request, page, contact=form)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def ask(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Ask for a change of the room."""
    if request.method != "POST":
        return _done(page, "changes")
    form = AskForm.typed(request)

    def act(*, wish: str, text: str) -> None:
        services.ask_create(page=page, wish=wish, text=text)

    if form.submit(request, act):
        return _done(page, "changes")
    return _show(request, page, ask=form)


@require_POST
@for_students
@visitor_only
def take_back(request: HttpRequest, page: ResidentPage, ask_id: int) -> HttpResponse:
    """Take back a change that nobody decided yet."""
    form = TypedForm.typed(request)
    if form.submit(request, lambda: services.ask_take_back(page=page, ask_id=ask_id)):
        return _done(page, "changes")
    return message(
        request,
        form.first_error,
        status=409,
        back=reverse("residents:home", args=[links.handle_of(page)]),
    )
