"""Addresses for monitoring programs: alive, ready, and metrics."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from webapp.monitoring import metrics, readiness


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
