"""Checking a file about students before it is imported: one page for every kind of file."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from engine.tabular.file_kinds import FileKind
from engine.tabular.table import Table
from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.forms import FileAct, FileChangeForm
from webapp.cohorts.late_files import ID
from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.naming import sees_names, without_people
from webapp.cohorts.services.drafts import draft_table, draft_undo
from webapp.cohorts.services.latecomers import LATE
from webapp.cohorts.services.student_files import (
    student_file_create,
    student_file_flag,
    student_file_import,
    student_file_preview,
    student_file_same,
    student_file_use,
)
from webapp.cohorts.student_files import MAX_LISTED, FileChoices, StudentFile, student_file_kind
from webapp.cohorts.views.drafts import sent_version
from webapp.cohorts.wrong_slots import earlier_survey, wrong_slot
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast

EXAMPLES = 3
EXAMPLE_LETTERS = 30


def checked_upload(request: SignedInRequest, cohort: Cohort, purpose: str, back: str) -> str:
    """Store the file of a form as a draft and return the address of its preview.

    Raises Refusal in one sentence if there is no file, or if it cannot be read.
    """
    file = request.FILES.get("file")
    if file is None:
        raise Refusal(_("Choose a CSV or XLSX file first."))
    made = student_file_create(
        user=request.user,
        cohort=cohort,
        purpose=purpose,
        filename=file.name or "",
        size=file.size or 0,
        read=file.read,
        back=back,
    )
    return reverse("cohorts:student-file", args=[cohort.pk, made.pk])


def _draft(request: SignedInRequest, uuid: str, draft_uuid: str) -> Draft:
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    drafts = Draft.objects.filter(cohort=cohort).exclude(purpose="")
    found = get_owned_or_404(drafts, request.user, draft_uuid)
    if student_file_kind(found.purpose) is None:
        raise Http404(_("There is no such kind of file."))
    return found


@require_http_methods(["GET", "POST"])
@staff_required
def student_file(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Show the content of a file; a POST changes how it is read."""
    draft = _draft(request, uuid, draft_uuid)
    if request.method == "POST":
        try:
            _change(request, draft)
        except Refusal as problem:
            toast(request, str(problem), error=True)
        return redirect("cohorts:student-file", draft.cohort_id, draft.pk)
    kind = student_file_kind(draft.purpose)
    if kind is None:
        raise Http404(_("There is no such kind of file."))
    choices, table = FileChoices.from_json(draft.choices), draft_table(draft)
    found = student_file_preview(draft)
    slot = wrong_slot(request.user, table, cohort=draft.own_cohort)
    holds = {FileKind.SURVEY} if draft.purpose == LATE.key else {FileKind.SURVEY, FileKind.ROSTER}
    if slot is not None and slot.kind in holds and found.n_kept:
        slot = None  # a survey or roster can hold requests, needs or e-mails as well
    if slot is None and draft.purpose == LATE.key:
        slot = earlier_survey(draft.own_cohort, _ids(table, choices))
    sees = sees_names(request)
    problems = found.problems[:MAX_LISTED]
    context = {
        "sees_names": sees,
        "slot": slot,
        "move_url": reverse("cohorts:draft-move", args=[draft.pk]),
        "cohort": draft.own_cohort,
        "draft": draft,
        "kind": kind,
        "choices": choices,
        "file": found,
        "uses": list(kind.uses(draft.own_cohort).items()),
        "columns": [
            (k, name, use, column_examples(table, k) if sees else [])
            for k, (name, use) in enumerate(zip(table.header, choices.uses, strict=True))
        ],
        "problems": problems if sees else list(map(without_people, problems)),
        "n_more_problems": max(0, len(found.problems) - MAX_LISTED),
        "unsure": _shown_unsure(request, draft, found),
    }
    return render(request, "cohorts/student_file.html", context)


def _ids(table: Table, choices: FileChoices) -> list[str]:
    """Return the ids of a file of late arrivals."""
    columns = choices.columns(ID)
    return [cell.strip() for cell in table.column(columns[0])] if columns else []


def column_examples(table: Table, column: int) -> list[str]:
    """Return a few different answers of a column, cut short."""
    return [cell[:EXAMPLE_LETTERS] for cell in list(table.answers(column))[:EXAMPLES]]


def _shown_unsure(request: SignedInRequest, draft: Draft, found: StudentFile) -> list[tuple]:
    """Return the rows without a certain student and their candidates; looking is audited."""
    places = {k: p for p, k in enumerate(draft.own_cohort.students.values_list("pk", flat=True))}
    shown = [
        (one, [(places[student.pk], student) for student in one.near.students])
        for one in found.unsure[:MAX_LISTED]
    ]
    labels = sorted({student.label for _, students in shown for _, student in students})
    if labels:
        audit(request.user, "looked up ids", draft.own_cohort, students=labels)
    return shown


def _change(request: SignedInRequest, draft: Draft) -> None:
    form = FileChangeForm.typed(request)
    form.check()
    sent, version = form.cleaned_data, form.seen
    action = sent["action"] or FileAct.USE
    if action is FileAct.UNDO:
        draft_undo(draft=draft, version=version)
    elif action is FileAct.SAME:
        key = sent["key"] or _key_of_row(draft, sent["row"])
        student_file_same(draft=draft, key=key, position=sent["position"], version=version)
    elif action is FileAct.USE:
        student_file_use(draft=draft, column=sent["column"], use=sent["use"], version=version)
    else:
        student_file_flag(draft=draft, flag=action, version=version)


def _key_of_row(draft: Draft, row: int | None) -> str:
    """Return the key of an unsure row by its number, for a page that shows no names."""
    rows = student_file_preview(draft).unsure if row is not None else []
    return next((one.key for one in rows if one.row == row), "")


@require_POST
@staff_required
def student_file_confirm(request: SignedInRequest, uuid: str, draft_uuid: str) -> HttpResponse:
    """Import the content of the file, or nothing and show one sentence."""
    draft = _draft(request, uuid, draft_uuid)
    back = FileChoices.from_json(draft.choices).back
    try:
        sentence = student_file_import(
            user=request.user, draft=draft, version=sent_version(request)
        )
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return redirect("cohorts:student-file", draft.cohort_id, draft.pk)
    toast(request, sentence)
    return redirect(back or reverse("cohorts:cohort", args=[uuid]))
