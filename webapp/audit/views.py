"""Looking back: the audit log of one's organisation."""

import io
from collections.abc import Iterator

from defusedcsv import csv
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from django_tables2 import RequestConfig

from webapp.audit.filters import AuditFilter
from webapp.audit.models import AuditLine
from webapp.audit.services import audit
from webapp.audit.tables import AuditTable, details_text
from webapp.common.decorators import staff_required
from webapp.common.selectors import owned_by
from webapp.files.file_headers import as_attachment

LINES_A_PAGE = 50
COLUMNS = ("time_utc", "who", "did", "kind", "what", "id", "details")


@require_GET
@staff_required
def log(request: HttpRequest) -> HttpResponse:
    """Show the lines that match the filter in the address."""
    lines = AuditFilter(request.GET, queryset=owned_by(AuditLine, request.user))
    table = AuditTable(lines.qs)
    RequestConfig(request, paginate={"per_page": LINES_A_PAGE, "silent": True}).configure(table)
    return render(request, "audit/log.html", {"table": table, "filter": lines})


@require_GET
@staff_required
def export(request: HttpRequest) -> HttpResponseBase:
    """Stream the lines that match the filter as CSV, safe against formula injection."""
    lines = AuditFilter(request.GET, queryset=owned_by(AuditLine, request.user)).qs
    audit(request.user, "exported", "audit log", lines=lines.count())
    response = StreamingHttpResponse(_csv_rows(lines.iterator()), content_type="text/csv")
    return as_attachment(response, "audit_log.csv")


def _csv_rows(lines: Iterator[AuditLine]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for line in lines:
        details = "; ".join(f"{name}={details_text(item)}" for name, item in line.details.items())
        writer.writerow(
            [
                line.created_at.isoformat(timespec="seconds"),
                line.username,
                line.verb,
                line.target_type,
                line.target_name,
                line.target_id,
                details,
            ]
        )
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
