"""Views for signing in and out, a user's settings, and the people of an organisation."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from zoneinfo import available_timezones

from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts import guesses, services
from webapp.accounts.forms import (
    ActiveForm,
    NamesForm,
    NewUserForm,
    OrganisationForm,
    RoleForm,
    SettingsForm,
    SignInForm,
)
from webapp.accounts.guesses import organisation_of_browser
from webapp.accounts.models import NamesFor, Role, User
from webapp.accounts.requests import SignedInRequest
from webapp.accounts.selectors import (
    only_organisation,
    organisation_of_code,
    working_tokens,
)
from webapp.audit.selectors import lines_of
from webapp.common.decorators import administrator_required
from webapp.common.form_pages import FormPage
from webapp.common.forms import TypedForm
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.identity.second_factor import has_second_factor
from webapp.identity.selectors import (
    is_any_provider_on,
    is_second_factor_duty,
    people_with_origin,
    providers_to_offer,
)
from webapp.identity.waiting import wait_for_code
from webapp.translation.lazy import gettext_lazy

SHOWN_ACTS = 6
# Rights of people, each with the lowest role: 0 viewers, 1 staff, 2 administrators.
RIGHTS = (
    (gettext_lazy("Look at everything but names, requests and logs"), 0),
    (gettext_lazy("Import, learn, place, propose and decide"), 1),
    (gettext_lazy("See requests, take files, write letters"), 1),
    (gettext_lazy("See students by name, unless set otherwise"), 1),
    (gettext_lazy("Read the audit log"), 1),
    (gettext_lazy("Publish rooms and send letters"), 2),
    (gettext_lazy("Purge cohorts, remove models and placements"), 2),
    (gettext_lazy("Manage people, sign-in and webhooks"), 2),
)


@method_decorator(login_not_required, name="dispatch")
class SignInView(auth_views.LoginView):
    """Sign-in page, which asks for a name and a password."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the page; redirect from a pasted sign-in link to the link's own URL."""
        found = organisation_of_code(request.GET.get("organisation", ""))
        if found is not None:
            address = reverse("accounts:sign-in-at", args=[found.sign_in_code])
            there = self.get_redirect_url()
            return redirect(f"{address}?{urlencode({'next': there})}" if there else address)
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the providers of the visitor's organisation, if it is known.

        The sign-in link names the organisation; otherwise it is that of the last user who signed in
        with this browser, or the only one of the installation.
        """
        context = super().get_context_data(**kwargs)
        code = self.kwargs.get("code", "")
        typed = code or self.request.GET.get("organisation", "")
        named = organisation_of_code(code)
        known = named or organisation_of_browser(self.request) or only_organisation()
        return context | {
            "named": named,
            "is_unknown": bool(typed) and named is None,
            "organisation": known,
            "asks_for_link": known is None and is_any_provider_on(),
            "providers": providers_to_offer(known, context["next"]),
        }

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check a name and a password, unless there were too many failures."""
        if guesses.is_over(request, request.POST.get("username", "")):
            return render(request, "accounts/too_many.html", status=429)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Begin a session, or ask for the second factor first."""
        user = form.get_user()
        if not has_second_factor(user):
            response: HttpResponse = super().form_valid(form)
            guesses.remember_browser(response, user)
            return response
        wait_for_code(self.request, user, self.get_success_url())
        return redirect("identity:code")


class SignOutView(auth_views.LogoutView):
    """Sign-out, which ends the session (POST)."""


class PasswordView(auth_views.PasswordChangeView):
    """Page on which users change their own password."""

    request: SignedInRequest
    template_name = "accounts/password.html"
    form_class = PasswordChangeForm

    def get_success_url(self) -> str:
        """Return the home page after the first sign-in, otherwise the settings page."""
        is_first = self.request.user.must_change_password
        return reverse("common:home" if is_first else "accounts:settings")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """Store the password, end the other sessions, and no longer require a change."""
        with transaction.atomic():
            response = super().form_valid(form)
            services.user_changed_password(user=self.request.user)
        tokens = working_tokens(self.request.user)
        sentences = [_("Password changed.")]
        if tokens:
            sentences.append(
                ngettext(
                    "Your %(count)s API token still works.",
                    "Your %(count)s API tokens still work.",
                    tokens,
                )
                % {"count": tokens}
            )
        toast(self.request, " ".join(sentences), icon="key-round")
        return response


def locked_out(
    request: HttpRequest, credentials: dict | None = None, *args: object
) -> HttpResponse:
    """Return the page for a visitor with too many failed sign-ins."""
    return render(request, "accounts/locked_out.html", status=429)


@keeps_typed
@require_http_methods(["GET", "POST"])
def settings(request: SignedInRequest) -> HttpResponse:
    """Show and store the user's own settings."""
    form = SettingsForm.typed(request, instance=request.user)
    own = {
        "has_password": request.user.has_usable_password(),
        "has_second_factor": has_second_factor(request.user),
    }
    if form.submit(request, lambda **_: form.save()):
        toast(request, _("Settings saved."), icon="check")
        return redirect("accounts:settings")
    return render(request, "accounts/settings.html", {"form": form, **own}, status=form.status)


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def people(request: SignedInRequest) -> HttpResponse:
    """List the people of the organisation and add a person; a new password is shown once."""
    form = NewUserForm.typed(request)
    if request.method == "POST" and form.is_valid():
        user, password = services.user_create(by=request.user, **form.cleaned_data)
        return _people_page(request, NewUserForm(), fresh=user, password=password)
    return _people_page(request, form)


def _people_page(request: SignedInRequest, form: NewUserForm, **fresh: object) -> HttpResponse:
    context = {
        "form": form,
        "people": people_with_origin(request.user),
        "is_duty": is_second_factor_duty(request.user),
        "roles": Role.choices,
        "zones": sorted(available_timezones()),
        "rights": RIGHTS,
        "ranks": range(len(Role)),
        "names_choices": NamesFor.choices,
        "names_for": NamesFor(request.user.own_organisation.names_for),
        "acts": lines_of(request.user)[:SHOWN_ACTS],
        **fresh,
    }
    return render(request, "accounts/people.html", context, status=422 if form.errors else 200)


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def rename_organisation(request: SignedInRequest) -> HttpResponse:
    """Change the name, department and time zone of the organisation."""
    found = request.user.own_organisation
    names = ("name", "department", "time_zone")
    form = OrganisationForm.typed(request, initial={name: getattr(found, name) for name in names})

    def rename(**fields: str) -> None:
        if "time_zone" not in form.data:
            fields.pop("time_zone")
        services.organisation_rename(by=request.user, **fields)

    if form.submit(request, rename):
        toast(request, _("The organisation was changed."))
        return redirect("accounts:people")
    trail = [(_("People"), reverse("accounts:people"))]
    return FormPage(_("Name and time zone"), _("Save the name and time zone"), trail).show(
        request, form
    )


def _press(request: SignedInRequest, form: TypedForm, act: Callable[..., str]) -> HttpResponse:
    """Perform the act of a button on the page of people; a refusal is a toast."""
    done: list[str] = []
    if form.submit(request, lambda **fields: done.append(act(**fields))):
        toast(request, done[0], icon="user-check")
    else:
        toast(request, form.first_error, error=True)
    return redirect("accounts:people")


@require_POST
@administrator_required
def change_names(request: SignedInRequest) -> HttpResponse:
    """Choose who sees the names of students."""

    def act(*, names_for: str) -> str:
        services.organisation_set_names(by=request.user, names_for=names_for)
        return _("The setting was saved.")

    return _press(request, NamesForm.typed(request), act)


@require_POST
@administrator_required
def change_role(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change the role of a person."""
    user = get_owned_or_404(User, request.user, pk)

    def act(*, role: str) -> str:
        services.user_set_role(by=request.user, user=user, role=role)
        return _("%(username)s is now %(role)s.") % {
            "username": user.username,
            "role": Role(role).label.lower(),
        }

    return _press(request, RoleForm.typed(request), act)


@require_POST
@administrator_required
def change_active(request: SignedInRequest, pk: int) -> HttpResponse:
    """Enable or disable an account."""
    user = get_owned_or_404(User, request.user, pk)

    def act(*, active: bool) -> str:
        services.user_set_active(by=request.user, user=user, active=active)
        if active:
            sentence = _("%(username)s can sign in.")
        else:
            sentence = _("%(username)s can not sign in any more.")
        return sentence % {"username": user.username}

    return _press(request, ActiveForm.typed(request), act)


@require_POST
@administrator_required
def reset_password(request: SignedInRequest, pk: int) -> HttpResponse:
    """Set a new temporary password and show it once, with the tokens that remain valid."""
    user = get_owned_or_404(User, request.user, pk)
    try:
        password = services.user_reset_password(by=request.user, user=user)
    except services.AccountError as problem:
        toast(request, str(problem), error=True)
        return redirect("accounts:people")
    fresh = {"fresh": user, "password": password, "n_tokens": working_tokens(user)}
    return _people_page(request, NewUserForm(), **fresh)
