"""Home, help and search pages, and the counts of the rail."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django.views.i18n import JavaScriptCatalog

from webapp.accounts.requests import SignedInRequest
from webapp.common import hooks
from webapp.common.context_processors import rail_of
from webapp.common.sessions import NAMES_HIDDEN

_HOUR = 3600  # seconds; a catalogue changes with a restart only
_catalogue = JavaScriptCatalog.as_view(packages=["webapp.common"])


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
@login_not_required
@cache_control(private=True, max_age=_HOUR)
def words_of_scripts(request: HttpRequest) -> HttpResponseBase:
    """Return the sentences of scripts in the language of staff, as a script of functions."""
    return _catalogue(request)


@require_safe
def search(request: SignedInRequest) -> HttpResponse:
    """Find a student, a pair or an object by its id or name; one hit opens at once."""
    query = request.GET.get("q", "").strip()[:100]
    request.user.hides_names = bool(request.session.get(NAMES_HIDDEN))
    hits = hooks.search(request.user, query) if query else []
    if len(hits) == 1 and "stay" not in request.GET:
        return redirect(hits[0].url)
    return render(request, "common/search.html", {"query": query, "hits": hits})
