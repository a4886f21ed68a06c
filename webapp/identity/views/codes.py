"""Second factors: set up, enter the code at sign-in, renew recovery codes, turn off."""

import base64
from typing import Any

from allauth.mfa.adapter import get_adapter
from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.guesses import remember_browser
from webapp.accounts.models import User
from webapp.accounts.requests import SignedInRequest
from webapp.accounts.views import locked_out
from webapp.common.decorators import administrator_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.identity import second_factor as service
from webapp.identity import services, waiting
from webapp.identity.forms import CodeForm, DutyForm, FactorAct, SecondFactorForm
from webapp.identity.selectors import is_second_factor_duty

_SECRET = "second-factor-secret"  # noqa: S105 - key in the session
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@login_not_required
@require_http_methods(["GET", "POST"])
def code(request: HttpRequest) -> HttpResponse:
    """Ask for the code after the password; wrong codes count and lock like failed sign-ins."""
    found = waiting.awaiting_code(request)
    if found is None:
        return redirect("accounts:sign-in")
    user, there = found
    if request.method == "GET":
        return render(request, "identity/code.html")
    credentials = {"username": user.get_username()}
    if not AxesProxyHandler.is_allowed(request, credentials):
        return locked_out(request)
    form = CodeForm.typed(request)
    if form.is_valid() and service.code_is_right(user=user, code=form.cleaned_data["code"]):
        waiting.stop_waiting(request)
        login(request, user, backend=_BACKEND)
        response = redirect(there)
        remember_browser(response, user)
        return response
    user_login_failed.send(__name__, credentials=credentials, request=request)
    if not AxesProxyHandler.is_allowed(request, credentials):
        waiting.stop_waiting(request)
        return locked_out(request)
    return render(request, "identity/code.html", {"is_wrong": True}, status=422)


@never_cache
@require_http_methods(["GET", "POST"])
def second_factor(request: SignedInRequest) -> HttpResponse:
    """Set up or turn off the user's own second factor, or renew its recovery codes."""
    user = request.user
    if not user.has_usable_password():
        toast(request, _("You sign in by a provider, which asks for second factors itself."))
        return redirect("accounts:settings")
    if request.method == "GET":
        return _page(request)
    form = SecondFactorForm.typed(request)
    try:
        form.check()
        sent = form.cleaned_data
        if sent["action"] is FactorAct.BEGIN:
            secret = request.session.get(_SECRET, "")
            if not secret:
                return _page(request)
            fresh = service.second_factor_begin(user=user, secret=secret, code=sent["code"])
            request.session.pop(_SECRET, None)
            return _page(request, fresh=fresh)
        _check_password(user, sent["password"])
        if sent["action"] is FactorAct.OFF:
            service.second_factor_remove(by=user, user=user)
            toast(request, _("Signing in asks for no code any more."))
        elif service.has_second_factor(user):
            return _page(request, fresh=service.recovery_codes_renew(user=user))
    except Refusal as problem:
        return _page(request, error=str(problem))
    return redirect("identity:second-factor")


def _check_password(user: User, password: str) -> None:
    if not user.check_password(password[:4_096]):
        raise services.IdentityError(_("This is not your password."))


def _page(
    request: SignedInRequest, *, error: str = "", fresh: list[str] | None = None
) -> HttpResponse:
    context: dict[str, Any] = {"error": error, "fresh": fresh}
    context["is_on"] = service.has_second_factor(request.user)
    context["is_duty"] = is_second_factor_duty(request.user)
    if context["is_on"]:
        context["n_left"] = service.recovery_codes_left(request.user)
    else:
        secret = request.session.get(_SECRET) or service.generate_totp_secret()
        request.session[_SECRET] = secret
        picture = get_adapter().build_totp_svg(get_adapter().build_totp_url(request.user, secret))
        encoded = base64.b64encode(picture.encode()).decode("ascii")
        groups = [secret[k : k + 4] for k in range(0, len(secret), 4)]
        context |= {"picture": f"data:image/svg+xml;base64,{encoded}", "secret": " ".join(groups)}
    return render(request, "identity/second_factor.html", context, status=422 if error else 200)


@require_POST
@administrator_required
def remove_for(request: SignedInRequest, pk: int) -> HttpResponse:
    """Turn off the second factor of a person who lost phone and recovery codes."""
    user = get_owned_or_404(User, request.user, pk)
    attempt(
        request,
        lambda: service.second_factor_remove(by=request.user, user=user),
        _("%(username)s signs in without a code now.") % {"username": user.username},
    )
    return redirect("accounts:people")


@require_POST
@administrator_required
def duty(request: SignedInRequest) -> HttpResponse:
    """Require a second factor of the organisation's local people, or stop requiring it."""

    def act(*, duty: bool) -> None:
        services.second_factor_require(by=request.user, is_duty=duty)
        words = _("Everybody with a password sets up a second factor at the next page they open.")
        toast(request, words if duty else _("A second factor is up to each person."))

    DutyForm.typed(request).press(request, act)
    return redirect("accounts:people")
