"""Home, help, search, and what programs that watch the server ask."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_GET

from webapp.common import hooks, metrics, readiness
from webapp.common.context_processors import rail_of


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Show what to do next, then what there is."""
    context = {
        "steps": hooks.next_steps(request.user),
        "facts": ", ".join(hooks.home_facts(request.user)),
        "panels": hooks.home_panels(request.user),
        "actions": hooks.home_actions(),
    }
    return render(request, "common/home.html", context)


@require_GET
def help_page(request: HttpRequest) -> HttpResponse:
    """Say in plain words what the numbers mean and what they do not."""
    return render(request, "common/help.html")


@require_GET
def rail_counts(request: HttpRequest) -> JsonResponse:
    """What stands beside the lines of the rail, by their address: a page that stays open asks."""
    items = [item for section in rail_of(request) for item in section["items"]]
    counts = {item["url"]: str(item["count"]) for item in items}
    return JsonResponse(counts, headers={"Cache-Control": "no-store"})


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """Find a student, a pair or an object by its id or name; one hit opens at once."""
    query = request.GET.get("q", "").strip()[:100]
    hits = hooks.search(request.user, query) if query else []
    if len(hits) == 1 and "stay" not in request.GET:
        return redirect(hits[0].url)
    return render(request, "common/search.html", {"query": query, "hits": hits})


@require_GET
@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while this process serves, whatever becomes of the parts that it uses."""
    return JsonResponse({"status": "ok"})


@require_GET
@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when every part works that people need, else 503; names the parts, no more."""
    parts = readiness.readiness()
    words = {name: "ok" if works else "not ready" for name, works in parts.items()}
    status = 200 if all(parts.values()) else 503
    return JsonResponse(words, status=status, headers={"Cache-Control": "no-store"})


@require_GET
@login_not_required
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Show numbers to a program that sends ``METRICS_TOKEN``; without one set, to nobody."""
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    wanted = settings.METRICS_TOKEN
    is_known = scheme.lower() == "bearer" and constant_time_compare(sent.strip(), wanted)
    if not wanted or not is_known:
        raise Http404
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)
