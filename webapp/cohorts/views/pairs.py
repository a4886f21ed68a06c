"""Importing the pairs of a past year."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.services.cohorts import CohortError, pairs_import
from webapp.cohorts.services.drafts import (
    DraftChangedError,
    draft_create,
    draft_table,
    draft_undo,
    draft_update,
    pairs_preview,
    read_pair_choices,
)
from webapp.cohorts.tables.pair_choices import PairChoices
from webapp.cohorts.views.drafts import LIMITS, sent_version
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast

UNKNOWN_SHOWN = 50


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: HttpRequest, uuid: str) -> HttpResponse:
    """Take a file of pairs or a roster."""
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
    """Show how the rows fit the cohort; a POST reads them another way."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = get_owned_or_404(Draft.objects.filter(cohort=cohort), request.user, draft_uuid)
    if request.method == "POST":
        try:
            if request.POST.get("action") == "undo":
                draft_undo(draft=found, version=sent_version(request))
            else:
                choices = _changed(found, request.POST).to_json()
                draft_update(draft=found, choices=choices, version=sent_version(request))
        except Refusal as problem:
            toast(request, str(problem), error=True)
        return redirect("cohorts:pairs-draft", cohort.pk, found.pk)
    table, choices, preview = draft_table(found), read_pair_choices(found), pairs_preview(found)
    context = {
        "cohort": cohort,
        "draft": found,
        "table": table,
        "choices": choices,
        "columns": choices.columns,
        "preview": preview,
        "unknown": preview.unknown[:UNKNOWN_SHOWN],
        "sample": [
            (number, [row[column] for column in choices.columns])
            for number, row in zip(table.row_numbers[:8], table.rows, strict=False)
        ],
        "sample_header": [table.header[column] for column in choices.columns],
    }
    return render(request, "cohorts/pairs_draft.html", context)


def _changed(found: Draft, post: QueryDict) -> PairChoices:
    """Return the choices after one form of the page; raise Refusal where they make no sense."""
    choices, action = read_pair_choices(found), post.get("action", "columns")
    if action == "same":
        position = whole_number(post.get("position", ""))
        if position is None or position >= found.cohort.n_students:
            raise CohortError("There is no such student.")
        return choices.with_same({post.get("cell", ""): position})
    if action == "sure":
        return choices.with_same(pairs_preview(found).sure)
    if action in ("without", "with"):
        return replace(choices, without=action == "without")
    names = ("first", "second", "third") if post.get("is_roster") else ("first", "second")
    columns = [whole_number(post.get(name, "")) for name in names if post.get(name)]
    n_columns = draft_table(found).n_columns
    if any(column is None or column >= n_columns for column in columns) or len(columns) < 2:
        raise CohortError("Choose two different columns.")
    if len(set(columns)) < len(columns):
        raise CohortError("Choose two different columns.")
    chosen = tuple(column for column in columns if column is not None)
    return replace(choices, columns=chosen, is_roster=bool(post.get("is_roster")))


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
    except (CohortError, DraftChangedError) as problem:
        toast(request, str(problem), error=True)
        return redirect("cohorts:pairs-draft", cohort.pk, found.pk)
    cohort.refresh_from_db()
    rooms = f" in {counted(cohort.n_rooms, 'shared room')}" if cohort.n_rooms else ""
    toast(request, f"{counted(cohort.n_pairs, 'pair')}{rooms} imported.")
    return redirect("cohorts:cohort", cohort.pk)
