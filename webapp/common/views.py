"""Home, help, search and the health check."""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from webapp.common import hooks


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
    """Answer 200 when the process serves and its database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return JsonResponse({"status": "ok"})
