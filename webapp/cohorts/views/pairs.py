"""Importing the pairs of a past year."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from engine.tabular.file_kinds import FileKind
from engine.tabular.pair_choices import PairChoices
from engine.tabular.pairs import PairsPreview, Unknown
from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.forms import PairsAct, PairsChangeForm
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.cohorts.naming import sees_names, without_people
from webapp.cohorts.services.cohorts import CohortError
from webapp.cohorts.services.drafts import (
    DraftChangedError,
    draft_create,
    draft_undo,
    draft_update,
    pairs_draft_table,
    pairs_preview,
    read_pair_choices,
)
from webapp.cohorts.services.imports import pairs_import
from webapp.cohorts.views.drafts import LIMITS, sent_version
from webapp.cohorts.wrong_slots import wrong_slot
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.translation.lazy import gettext_lazy

UNKNOWN_SHOWN = 50
# The fields of columns: two people and further residents, or a resident, a hall and a room.
_ROOMMATE_LABELS = (
    gettext_lazy("First roommate"),
    gettext_lazy("Second roommate"),
    gettext_lazy("Third roommate"),
    gettext_lazy("Fourth roommate"),
    gettext_lazy("Fifth roommate"),
    gettext_lazy("Sixth roommate"),
    gettext_lazy("Seventh roommate"),
    gettext_lazy("Eighth roommate"),
)
COLUMN_FIELDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_ROSTER_LABELS = (
    gettext_lazy("Resident"),
    gettext_lazy("Hall or room"),
    gettext_lazy("Room within it"),
)


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Accept a file of pairs or a roster."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        if file is None:
            error = _("Choose a CSV or XLSX file first.")
        else:
            try:
                draft = draft_create(
                    user=request.user,
                    filename=file.name or "",
                    size=file.size or 0,
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
def draft(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Show how the rows match the cohort; a POST changes how they are read."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = get_owned_or_404(
        Draft.objects.filter(cohort=cohort, purpose=""), request.user, draft_uuid
    )
    if request.method == "POST":
        try:
            form = PairsChangeForm.typed(request, names=COLUMN_FIELDS)
            form.check()
            if form.cleaned_data["action"] is PairsAct.UNDO:
                draft_undo(draft=found, version=form.seen)
            else:
                choices = _changed(found, form.cleaned_data).to_json()
                draft_update(draft=found, choices=choices, version=form.seen)
        except Refusal as problem:
            toast(request, str(problem), error=True)
        return redirect("cohorts:pairs-draft", cohort.pk, found.pk)
    table, preview = pairs_draft_table(found), pairs_preview(found)
    picked = read_pair_choices(found)
    expected = [FileKind.SURVEY] if preview.can_import else []
    sees = sees_names(request)
    context = {
        "sees_names": sees,
        "problems": [
            (
                one.severity,
                *(text if sees else without_people(text) for text in (one.sentence, one.detail)),
            )
            for one in preview.problems
        ],
        "cohort": cohort,
        "draft": found,
        "slot": wrong_slot(request.user, table, FileKind.ROSTER, *expected, cohort=cohort),
        "move_url": reverse("cohorts:draft-move", args=[found.pk]),
        "table": table,
        "choices": picked,
        "fields": _column_fields(picked, table.n_columns),
        "preview": preview,
        "unknown": _shown_unknown(request, found, preview),
        "sample": [
            (number, [row[column] for column in picked.columns])
            for number, row in zip(table.row_numbers[:8], table.rows, strict=False)
        ],
        "sample_header": [table.header[column] for column in picked.columns],
    }
    return render(request, "cohorts/pairs_draft.html", context)


def _column_fields(choices: PairChoices, n_columns: int) -> list[tuple[str, str, int | None]]:
    """Return [(field, label, column or None)]: the chosen columns, and one that can be added."""
    if choices.is_roster:
        labels: tuple[str, ...] = _ROSTER_LABELS
    else:
        n_fields = min(len(choices.columns) + 1, n_columns, len(COLUMN_FIELDS))
        labels = tuple(_ROOMMATE_LABELS[:n_fields])
    chosen = [*choices.columns, *[None] * len(labels)]
    return list(zip(COLUMN_FIELDS, labels, chosen, strict=False))


def _shown_unknown(
    request: SignedInRequest, draft: Draft, preview: PairsPreview
) -> list[tuple[Unknown, list[tuple[int, Student]]]]:
    """Return the cells without a certain student, with the students that they may mean.

    Namesakes are shown with their original ids, which is audited like any look at them.
    """
    shown = preview.unknown[:UNKNOWN_SHOWN]
    wanted = {position for one in shown for position in one.namesakes}
    if not wanted:
        return [(one, []) for one in shown]
    students = list(draft.own_cohort.students.only("number", "original_id", "cohort_id"))
    labels = [students[position].label for position in sorted(wanted)]
    audit(request.user, "looked up ids", draft.own_cohort, students=labels)
    return [(one, [(k, students[k]) for k in one.namesakes]) for one in shown]


def _changed(found: Draft, sent: Mapping[str, Any]) -> PairChoices:
    """Return the choices after one form of the page; raise Refusal if they are invalid."""
    choices, action = read_pair_choices(found), sent["action"] or PairsAct.COLUMNS
    if action is PairsAct.SAME:
        position = sent["position"]
        if position is None or position >= found.own_cohort.n_students:
            raise CohortError(_("There is no such student."))
        cell = sent["cell"] or _unknown_cell(found, sent["unknown"])
        return choices.with_same({cell: position})
    if action is PairsAct.SURE:
        return choices.with_same(pairs_preview(found).sure)
    if action is PairsAct.ZEROS:
        return choices.with_same(pairs_preview(found).zeros)
    if action is not PairsAct.COLUMNS:
        return replace(choices, without=action is PairsAct.WITHOUT)
    names = COLUMN_FIELDS[:3] if sent["is_roster"] else COLUMN_FIELDS
    columns = tuple(sent[name] for name in names if sent[name] is not None)
    is_beyond = max(columns, default=0) >= pairs_draft_table(found).n_columns
    if is_beyond or len(columns) < 2 or len(set(columns)) < len(columns):
        raise CohortError(_("Choose two different columns."))
    return replace(choices, columns=columns, is_roster=sent["is_roster"])


def _unknown_cell(found: Draft, place: int | None) -> str:
    """Return the key of an unknown cell by its place, for a page that shows no names."""
    unknown = pairs_preview(found).unknown
    return unknown[place].key if place is not None and place < len(unknown) else ""


@require_POST
@staff_required
def confirm(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Import all pairs or none."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = get_owned_or_404(
        Draft.objects.filter(cohort=cohort, purpose=""), request.user, draft_uuid
    )
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
    facts = {"count": f"{cohort.n_pairs:,}", "rooms": counted(cohort.n_rooms, "shared room")}
    if cohort.n_rooms:
        sentence = ngettext(
            "%(count)s pair in %(rooms)s imported.",
            "%(count)s pairs in %(rooms)s imported.",
            cohort.n_pairs,
        )
    else:
        sentence = ngettext("%(count)s pair imported.", "%(count)s pairs imported.", cohort.n_pairs)
    toast(request, sentence % facts)
    return redirect("cohorts:cohort", cohort.pk)
