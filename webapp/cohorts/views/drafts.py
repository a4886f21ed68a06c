"""Uploading a cohort and checking its columns."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.audit.services import audit
from webapp.cohorts.models import Draft
from webapp.cohorts.selectors.cohorts import open_drafts
from webapp.cohorts.services.cohorts import CohortError, draft_import
from webapp.cohorts.services.drafts import (
    ChangedElsewhereError,
    draft_create,
    draft_discard,
    draft_preview,
    draft_table,
    draft_update,
)
from webapp.cohorts.tables.actions import ActionError, apply_action, read_request
from webapp.cohorts.tables.choices import Choices, Role
from webapp.cohorts.tables.preview import Preview
from webapp.cohorts.tables.table import (
    MAX_COLUMNS,
    MAX_FILE_BYTES,
    MAX_ROWS,
)
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast

ROWS_SHOWN = 50
LIMITS = {
    "megabytes": MAX_FILE_BYTES // 1024**2,
    "rows": MAX_ROWS,
    "columns": MAX_COLUMNS,
    "days": Draft.KEPT_DAYS,
}


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: HttpRequest) -> HttpResponse:
    """Take a file; on success show its columns, else say in one sentence what is wrong."""
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        if file is None:
            error = "Choose a CSV or XLSX file first."
        else:
            try:
                draft = draft_create(
                    user=request.user, filename=file.name, size=file.size, read=file.read
                )
                return redirect("cohorts:draft", draft.pk)
            except Refusal as problem:
                error = str(problem)
    drafts = open_drafts(request.user).filter(cohort=None)
    context = {"error": error, "limits": LIMITS, "drafts": drafts}
    return render(request, "cohorts/upload.html", context, status=422 if error else 200)


def _owned_draft(request: HttpRequest, uuid: str) -> Draft:
    return get_owned_or_404(Draft.objects.filter(cohort=None), request.user, uuid)


@require_GET
@staff_required
def draft(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show columns, problems and what would be imported."""
    return _render(request, _owned_draft(request, uuid))


@require_POST
@staff_required
def draft_change(request: HttpRequest, uuid: str) -> HttpResponse:
    """Apply one button of the preview."""
    found = _owned_draft(request, uuid)
    table = draft_table(found)
    try:
        asked = read_request(table, request.POST, request.POST.getlist("column"))
        choices = apply_action(
            request.POST.get("action", ""), Choices.from_json(found.choices), asked
        )
        found = draft_update(draft=found, choices=choices.to_json(), version=sent_version(request))
    except (ActionError, ChangedElsewhereError) as problem:
        toast(request, str(problem), error=True)
        found.refresh_from_db()
    if request.htmx:
        return _render(request, found)
    opened = whole_number(request.POST.get("open", ""))
    query = f"?column={opened}#column-{opened}" if opened is not None else ""
    return redirect(reverse("cohorts:draft", args=[found.pk]) + query)


@require_POST
@staff_required
def draft_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import everything, or nothing with one sentence."""
    found = _owned_draft(request, uuid)
    try:
        cohort = draft_import(
            user=request.user,
            draft=found,
            name=request.POST.get("name", ""),
            version=sent_version(request),
        )
    except (CohortError, ChangedElsewhereError) as problem:
        toast(request, str(problem), error=True)
        return redirect("cohorts:draft", found.pk)
    toast(request, f"{cohort.n_students:,} students imported.")
    return redirect("cohorts:cohort", cohort.pk)


@require_POST
@staff_required
def draft_remove(request: HttpRequest, uuid: str) -> HttpResponse:
    """Discard an upload."""
    found = get_owned_or_404(Draft, request.user, uuid)
    draft_discard(user=request.user, draft=found)
    toast(request, f"{found.filename} was discarded. Nothing was imported.")
    if found.cohort_id is not None:
        return redirect("cohorts:pairs-upload", found.cohort_id)
    return redirect("cohorts:upload")


def sent_version(request: HttpRequest) -> int:
    """Return the version that the page showed; 0, which no draft has, where none was sent."""
    return whole_number(request.POST.get("version", "")) or 0


def _render(request: HttpRequest, draft: Draft) -> HttpResponse:
    preview = draft_preview(draft)
    opened = whole_number(request.GET.get("column") or request.POST.get("open") or "")
    tab = "rows" if request.GET.get("tab") == "rows" else "columns"
    context: dict[str, Any] = {
        "draft": draft,
        "preview": preview,
        "opened": -1 if opened is None else opened,
        "tab": tab,
        "suggested_name": _suggested_name(draft.filename),
    }
    if tab == "rows":
        context |= _first_rows(preview)
        audit(request.user, "looked up ids", draft, rows=len(context["rows"]))
    template = "cohorts/_draft_body.html" if request.htmx else "cohorts/draft.html"
    return render(request, template, context)


def _first_rows(preview: Preview) -> dict[str, Any]:
    """The first rows as the file has them, but for ignored columns: those may hold names."""
    n_columns = preview.table.n_columns
    used = [
        column.index
        for column in preview.columns[:n_columns]
        if column.choice.role is not Role.IGNORE
    ]
    numbers = preview.table.row_numbers[:ROWS_SHOWN]
    rows = [
        (number, number in preview.dropped, [row[index] for index in used])
        for number, row in zip(numbers, preview.table.rows, strict=False)
    ]
    return {"header": [preview.table.header[index] for index in used], "rows": rows}


def _suggested_name(filename: str) -> str:
    stem = filename.rsplit(".", 1)[0].replace("_", " ").replace("-", " ").strip()
    return stem[:1].upper() + stem[1:120]
