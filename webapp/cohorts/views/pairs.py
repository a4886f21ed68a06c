"""Importing the pairs of a past year."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.services.cohorts import CohortError, pairs_import
from webapp.cohorts.services.drafts import (
    ChangedElsewhereError,
    draft_create,
    draft_table,
    draft_update,
    pairs_preview,
)
from webapp.cohorts.views.drafts import LIMITS, sent_version
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: HttpRequest, uuid: str) -> HttpResponse:
    """Take a file with two columns of ids."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        if file is None:
            error = "Choose a CSV or XLSX file first."
        else:
            try:
                draft = draft_create(
                    user=request.user,
                    filename=file.name,
                    size=file.size,
                    read=file.read,
                    cohort=cohort,
                )
                return redirect("cohorts:pairs-draft", cohort.pk, draft.pk)
            except Refusal as problem:
                error = str(problem)
    context = {"cohort": cohort, "error": error, "limits": LIMITS}
    return render(request, "cohorts/pairs_upload.html", context, status=422 if error else 200)


@require_http_methods(["GET", "POST"])
@staff_required
def draft(request: HttpRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Show how the rows fit the cohort; a POST chooses other columns."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = get_owned_or_404(Draft.objects.filter(cohort=cohort), request.user, draft_uuid)
    table = draft_table(found)
    if request.method == "POST":
        columns = [whole_number(request.POST.get(name, "")) for name in ("first", "second")]
        exist = all(column is not None and column < table.n_columns for column in columns)
        if exist and columns[0] != columns[1]:
            try:
                choices = {**found.choices, "columns": columns}
                draft_update(draft=found, choices=choices, version=sent_version(request))
            except ChangedElsewhereError as problem:
                toast(request, str(problem), error=True)
        else:
            toast(request, "Choose two different columns.", error=True)
        return redirect("cohorts:pairs-draft", cohort.pk, found.pk)
    columns = found.choices["columns"]
    context = {
        "cohort": cohort,
        "draft": found,
        "table": table,
        "columns": columns,
        "preview": pairs_preview(found),
        "sample": [
            (number, row[columns[0]], row[columns[1]])
            for number, row in zip(table.row_numbers[:8], table.rows, strict=False)
        ],
    }
    return render(request, "cohorts/pairs_draft.html", context)


@require_POST
@staff_required
def confirm(request: HttpRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Import all pairs or none."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = get_owned_or_404(Draft.objects.filter(cohort=cohort), request.user, draft_uuid)
    try:
        pairs_import(
            user=request.user,
            draft=found,
            version=sent_version(request),
        )
    except (CohortError, ChangedElsewhereError) as problem:
        toast(request, str(problem), error=True)
        return redirect("cohorts:pairs-draft", cohort.pk, found.pk)
    cohort.refresh_from_db()
    toast(request, f"{counted(cohort.n_pairs, 'pair')} imported.")
    return redirect("cohorts:cohort", cohort.pk)
