"""Providers of an organisation: list, add, change, remove; and their back-channel sign-outs."""

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import administrator_required
from webapp.common.form_pages import if_named, remove_page
from webapp.common.kept_forms import keeps_typed, sent_fields
from webapp.common.limits import count_up
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.identity import services
from webapp.identity.back_channel import sign_out
from webapp.identity.forms import form_of
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.selectors import provider_addresses

_CALLS_A_MINUTE = 120


@require_safe
@administrator_required
def provider_list(request: SignedInRequest) -> HttpResponse:
    """List the providers of the organisation."""
    code = request.user.own_organisation.sign_in_code
    context = {
        "providers": owned_by(IdentityProvider, request.user),
        "protocols": Protocol.choices,
        "link": request.build_absolute_uri(reverse("accounts:sign-in-at", args=[code])),
    }
    return render(request, "identity/providers.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def new(request: SignedInRequest) -> HttpResponse:
    """Add a provider; its page then shows the URLs to enter at the provider."""
    sent = sent_fields(request) or request.GET  # a kept form comes back without the query
    is_saml = sent.get("protocol", request.GET.get("protocol")) == Protocol.SAML
    protocol = Protocol.SAML if is_saml else Protocol.OPENID_CONNECT
    return _edit(request, IdentityProvider(protocol=protocol))


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def provider(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show and change a provider."""
    return _edit(request, get_owned_or_404(IdentityProvider, request.user, pk))


def _edit(request: SignedInRequest, found: IdentityProvider) -> HttpResponse:
    form = form_of(found.protocol).typed(request, instance=found)

    def keep(**fields: object) -> None:
        services.provider_keep(by=request.user, provider=form.instance)

    if form.submit(request, keep):
        sentence = _("%(instance)s was kept.") % {"instance": form.instance.name}
        toast(request, sentence, icon="check")
        return redirect("identity:provider", form.instance.pk)
    context = {
        "form": form,
        "provider": found,
        "title": IdentityProvider.objects.get(pk=found.pk).name if found.pk else _("New provider"),
        "addresses": provider_addresses(request, found) if found.pk else [],
        "n_people": found.people.count() if found.pk else 0,
    }
    return render(request, "identity/provider.html", context, status=form.status)


@require_POST
@administrator_required
def remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a provider if its name was typed; its people's accounts are disabled."""
    found = get_owned_or_404(IdentityProvider, request.user, pk)
    name = found.name

    def act() -> None:
        count = services.provider_remove(by=request.user, provider=found)
        words = _("%(name)s was removed. %(count)s of its people are switched off.")
        toast(request, words % {"name": name, "count": f"{count:,}"})

    return remove_page(
        request,
        _("Remove this provider"),
        if_named(name, act),
        [
            (_("Providers"), reverse("identity:providers")),
            (name, reverse("identity:provider", args=[found.pk])),
        ],
        words=_("Its people are switched off, and what they did stays."),
        done="",
    )


@csrf_exempt
@never_cache
@login_not_required
@require_POST
def back_channel(request: HttpRequest, key: str) -> HttpResponse:
    """End the sessions of a person who signed out at the provider, by its signed token."""
    if count_up("back-channel", request.META.get("REMOTE_ADDR", "")) > _CALLS_A_MINUTE:
        return JsonResponse({"error": "too_many_requests"}, status=429)
    found = IdentityProvider.objects.filter(key=key, is_on=True).first()
    if found is None:
        raise Http404
    try:
        sign_out(provider=found, token=request.POST.get("logout_token", "")[:20_000])
    except services.IdentityError as problem:
        answer = {"error": "invalid_request", "error_description": str(problem)}
        return JsonResponse(answer, status=400)
    return HttpResponse(status=200)
