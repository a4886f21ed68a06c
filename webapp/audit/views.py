"""Views of the organisation's audit log."""

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.details import details_text
from webapp.audit.forms import AuditFilter
from webapp.audit.models import AuditLine
from webapp.audit.selectors import lines_of
from webapp.audit.services import audit
from webapp.common.decorators import staff_required
from webapp.common.listing import list_page
from webapp.files.file_headers import as_attachment
from webapp.tabular.tables_out import CSV, csv_lines

SORTS = ("created_at", "username", "verb", "target_name")
COLUMNS = ("time_utc", "who", "did", "kind", "what", "id", "details")


@require_safe
@staff_required
def log(request: SignedInRequest) -> HttpResponse:
    """Show the audit lines that match the filter in the URL."""
    form = AuditFilter(request.GET, lines=lines_of(request.user))
    listing = list_page(form.matching(), request.GET, search=(), sorts=SORTS)
    return render(request, "audit/log.html", {"listing": listing, "form": form})


@require_safe
@staff_required
def export(request: SignedInRequest) -> HttpResponseBase:
    """Stream the audit lines that match the filter as CSV."""
    lines = AuditFilter(request.GET, lines=lines_of(request.user)).matching()
    audit(request.user, "exported", "audit log", lines=lines.count())
    response = StreamingHttpResponse(csv_lines(_rows(lines.iterator())), content_type=CSV)
    return as_attachment(response, "audit_log.csv")


def _rows(lines: Iterator[AuditLine]) -> Iterator[tuple[Any, ...]]:
    yield COLUMNS
    for line in lines:
        details = "; ".join(f"{name}={details_text(item)}" for name, item in line.details.items())
        yield (
            line.created_at.isoformat(timespec="seconds"),
            line.username,
            line.verb,
            line.target_type,
            line.target_name,
            line.target_id,
            details,
        )
