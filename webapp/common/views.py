"""Home, help and search pages, and addresses for monitoring programs."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common import hooks, metrics, readiness
from webapp.common.context_processors import rail_of
from webapp.common.sessions import NAMES_HIDDEN


@require_safe
def home(request: SignedInRequest) -> HttpResponse:
    """Show the next steps, then the existing objects."""
    context = {
        "steps": hooks.next_steps(request.user),
        "facts": ", ".join(hooks.home_facts(request.user)),
        "panels": hooks.home_panels(request.user),
        "actions": hooks.home_actions(),
    }
    return render(request, "common/home.html", context)


@require_safe
def help_page(request: SignedInRequest) -> HttpResponse:
    """Explain in plain words what the numbers mean and what they do not."""
    return render(request, "common/help.html")


@require_safe
def rail_counts(request: SignedInRequest) -> JsonResponse:
    """Return the counts beside the lines of the rail, by address, for a page that stays open."""
    items = [item for section in rail_of(request.path, request.user) for item in section["items"]]
    counts = {item["url"]: str(item["count"]) for item in items}
    return JsonResponse(counts, headers={"Cache-Control": "no-store"})


@require_safe
def search(request: SignedInRequest) -> HttpResponse:
    """Find a student, a pair or an object by its id or name; one hit opens at once."""
    query = request.GET.get("q", "").strip()[:100]
    request.user.hides_names = bool(request.session.get(NAMES_HIDDEN))
    hits = hooks.search(request.user, query) if query else []
    if len(hits) == 1 and "stay" not in request.GET:
        return redirect(hits[0].url)
    return render(request, "common/search.html", {"query": query, "hits": hits})


@require_safe
@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while this process serves, whatever the state of the parts that it uses."""
    return JsonResponse({"status": "ok"})


@require_safe
@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if every necessary part works, else 503; only names the parts.

    A slow part still works.
    """
    parts = readiness.readiness()
    status = 503 if readiness.Readiness.NOT_READY in parts.values() else 200
    return JsonResponse(parts, status=status, headers={"Cache-Control": "no-store"})


@require_safe
@login_not_required
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Show metrics to a program that sends ``METRICS_TOKEN``; to nobody if it is not set."""
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    wanted = settings.METRICS_TOKEN
    is_known = scheme.lower() == "bearer" and constant_time_compare(sent.strip(), wanted)
    if not wanted or not is_known:
        raise Http404
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)
