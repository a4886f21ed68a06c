"""Uploading a cohort and checking its columns."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.tabular.actions import apply_action, read_request
from engine.tabular.cause_done import requests_in
from engine.tabular.cause_proposals import group_sizes, suggested
from engine.tabular.choices import Role
from engine.tabular.facts import facts_of
from engine.tabular.file_kinds import FileKind
from engine.tabular.guesses import MAKERS_OWN
from engine.tabular.identity import IDENTITY
from engine.tabular.preview import ColumnPreview, Preview
from engine.tabular.review import Review
from engine.tabular.source import MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS
from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.forms import DraftVersionForm, ImportForm, MovedForm, SheetForm
from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.selectors.cohorts import cohort_listing, open_drafts
from webapp.cohorts.services.drafts import (
    draft_create,
    draft_discard,
    draft_first_causes,
    draft_preview,
    draft_reread,
    draft_review,
    draft_source,
    draft_undo,
    draft_update,
)
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.student_files import student_file_keep
from webapp.cohorts.student_files import FileChoices
from webapp.cohorts.views.pressed_buttons import PressedButton, read_pressed_button
from webapp.cohorts.wrong_slots import draft_move, wrong_slot
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.tabular.reading import refusals
from webapp.translation.lazy import gettext_lazy

ROWS_SHOWN = 50
REQUESTS = "requests"  # the kind of a file of requested roommates
SHOWN_COHORTS = 5  # number of imported cohorts shown
HEADER_ROWS_SHOWN = 15
ROLES = (
    (Role.ID.value, gettext_lazy("Id")),
    (Role.QUESTION.value, gettext_lazy("Question")),
    (Role.CONSTRAINT.value, gettext_lazy("Rule")),
    (Role.NEED.value, gettext_lazy("Need")),
    (Role.EMAIL.value, gettext_lazy("E-mail")),
    (Role.NAME.value, gettext_lazy("Name, or a part of it")),
    (Role.PREFERRED.value, gettext_lazy("Preferred name")),
    (Role.PRONOUNS.value, gettext_lazy("Pronouns")),
    (Role.IGNORE.value, gettext_lazy("Leave out")),
)
_FIELDS = ("role", "kind", "name", "edges")  # of a column, each followed by its number
LIMITS = {
    "megabytes": MAX_FILE_BYTES // 1024**2,
    "rows": MAX_ROWS,
    "columns": MAX_COLUMNS,
    "days": Draft.KEPT_DAYS,
}


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: SignedInRequest) -> HttpResponse:
    """Accept a file; show its columns, or one sentence on the problem."""
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        if file is None:
            error = _("Choose a CSV or XLSX file first.")
        else:
            try:
                draft = draft_create(
                    user=request.user, filename=file.name or "", size=file.size or 0, read=file.read
                )
                return redirect("cohorts:draft", draft.pk)
            except Refusal as problem:
                error = str(problem)
    drafts = open_drafts(request.user).filter(cohort=None, about=None)
    imported = cohort_listing(request.user, {}, size=SHOWN_COHORTS)
    context = {"error": error, "limits": LIMITS, "drafts": drafts, "imported": imported.rows}
    return render(request, "cohorts/upload.html", context, status=422 if error else 200)


def _owned_draft(request: SignedInRequest, uuid: str) -> Draft:
    return get_owned_or_404(Draft.objects.filter(cohort=None, about=None), request.user, uuid)


@require_safe
@staff_required
def draft(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show columns, problems and the data to be imported."""
    return _render(request, _owned_draft(request, uuid))


@require_POST
@staff_required
def draft_change(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Apply one button of the preview; htmx gets the changed parts of the page."""
    found = _owned_draft(request, uuid)
    before = draft_preview(found)
    pressed = read_pressed_button(request.POST)
    opened = pressed.opened
    try:
        if pressed.action == "open":
            opened = pressed.column
        elif pressed.action == "read_anew":
            found = draft_reread(
                draft=found,
                **sheet_sent(pressed.data),
                version=sent_version(request),
            )
        elif pressed.action == "undo":
            found = draft_undo(draft=found, version=sent_version(request))
        else:
            found = _pressed(found, before, pressed, sent_version(request))
    except Refusal as problem:
        toast(request, str(problem), error=True)
        found.refresh_from_db()
    if request.htmx:
        return _render_changes(request, found, before, pressed.opened, opened)
    query = f"?column={opened}#column-{opened}" if opened is not None else ""
    return redirect(reverse("cohorts:draft", args=[found.pk]) + query)


def _pressed(found: Draft, before: Preview, pressed: PressedButton, version: int) -> Draft:
    with refusals():
        asked = read_request(
            before.table,
            pressed.data,
            pressed.columns,
            len(before.choices.columns),
            draft_first_causes(found),
        )
        choices = apply_action(pressed.action, before.choices, asked)
    return draft_update(draft=found, choices=choices.to_json(), version=version)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def draft_confirm(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import everything, or nothing and show why beside the typed name."""
    found = _owned_draft(request, uuid)
    form = ImportForm.typed(request, initial={"name": _suggested_name(found.filename)})
    if not form.is_bound:
        return redirect("cohorts:draft", found.pk)
    source = draft_source(found) if form.data.get("keep_requests") else None
    made: list[Cohort] = []

    def act(*, name: str, version: int | None, **_: Any) -> None:
        made.append(draft_import(user=request.user, draft=found, name=name, version=version or 0))

    if not form.submit(request, act):
        return _render(request, found, form)
    cohort = made[0]
    toast(
        request,
        ngettext("%(count)s student imported.", "%(count)s students imported.", cohort.n_students)
        % {"count": f"{cohort.n_students:,}"},
    )
    if source is not None:
        try:
            requests = student_file_keep(
                user=request.user,
                cohort=cohort,
                purpose=REQUESTS,
                filename=found.filename,
                source=source,
                back=reverse("cohorts:cohort", args=[cohort.pk]),
            )
        except Refusal as problem:
            toast(request, str(problem), error=True)
        else:
            return redirect("cohorts:student-file", cohort.pk, requests.pk)
    return redirect("cohorts:cohort", cohort.pk)


@require_POST
@staff_required
def draft_remove(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Discard an upload."""
    found = get_owned_or_404(Draft, request.user, uuid)
    draft_discard(user=request.user, draft=found)
    toast(
        request,
        _("%(filename)s was discarded. Nothing was imported.") % {"filename": found.filename},
    )
    if found.purpose:
        back = FileChoices.from_json(found.choices).back
        return redirect(back or reverse("cohorts:cohort", args=[found.cohort_id]))
    if found.cohort_id is not None:
        return redirect("cohorts:pairs-upload", found.cohort_id)
    return redirect("cohorts:upload")


@require_POST
@staff_required
def draft_moved(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import an upload as the kind of file that it seems to be; its first draft is discarded."""
    found = get_owned_or_404(Draft, request.user, uuid)
    return redirect(
        moved(
            request,
            lambda to, cohort: draft_move(user=request.user, draft=found, to=to, cohort=cohort),
            found.get_absolute_url(),
        )
    )


def moved(request: SignedInRequest, move: Callable[[str, Cohort | None], str], address: str) -> str:
    """Move a file as a form says; return the address of its preview, or ``address`` if refused."""
    form = MovedForm.typed(request, cohorts=owned_by(Cohort, request.user))
    addresses: list[str] = []
    form.press(request, lambda to, cohort: addresses.append(move(to, cohort)))
    return addresses[0] if addresses else address


def sheet_sent(data: Mapping[str, str]) -> dict[str, Any]:
    """Return the sheet and the row of the header that a form names; refuse what is no number."""
    form = SheetForm(data)
    form.check()
    return {"sheet": form.cleaned_data["sheet"] or 0, "header_row": form.cleaned_data["header_row"]}


def sent_version(request: SignedInRequest) -> int:
    """Return the version that the page showed; if none was sent 0, which no draft has."""
    return DraftVersionForm.typed(request).seen


def _render(request: SignedInRequest, draft: Draft, form: ImportForm | None = None) -> HttpResponse:
    """Return the page; ``form`` is a refused import, whose dialog is open."""
    found = draft_review(draft)
    form = form or ImportForm(initial={"name": _suggested_name(draft.filename)})
    opened = whole_number(request.GET.get("column") or "")
    tab = request.GET.get("tab", "")
    context = _context(draft, found, opened) | {
        "form": form,
        "slot": wrong_slot(request.user, found.preview.table, FileKind.SURVEY),
        "move_url": reverse("cohorts:draft-move", args=[draft.pk]),
        "tab": tab if tab in ("rows", "reading") else "columns",
        "column_rows": [
            column_row(found.preview, column, column.index == opened)
            for column in sorted(found.preview.columns, key=_is_makers_own)
        ],
    }
    if tab == "rows":
        context |= _first_rows(found.preview)
        audit(request.user, "looked up ids", draft, rows=len(context["rows"]))
    if tab == "reading":
        context |= _reading(draft, found.preview)
    template = "cohorts/_draft_body.html" if request.htmx else "cohorts/draft.html"
    return render(request, template, context, status=form.status)


def _is_makers_own(column: ColumnPreview) -> bool:
    """Return True if the program that wrote the file added the column, and it is ignored."""
    return column.choice.reason == MAKERS_OWN and column.choice.role is Role.IGNORE


def _context(draft: Draft, found: Review, opened: int | None) -> dict[str, Any]:
    return {
        "draft": draft,
        "review": found,
        "preview": found.preview,
        "opened": -1 if opened is None else opened,
        "requests": requests_in(found.preview),
        "change_url": reverse("cohorts:draft-change", args=[draft.pk]),
    }


def _render_changes(
    request: SignedInRequest,
    draft: Draft,
    before: Preview,
    was_open: int | None,
    opened: int | None,
) -> HttpResponse:
    """Return the header, the causes, and the rows of the changed columns."""
    found = draft_review(draft)
    after = found.preview
    if after.table is not before.table or len(after.columns) != len(before.columns):
        return _render(request, draft)
    changed = [
        column
        for column, old in zip(after.columns, before.columns, strict=True)
        if column is not old or (column.index in (was_open, opened) and was_open != opened)
    ]
    context = _context(draft, found, opened) | {
        "tab": "columns",
        "is_part": True,
        "column_rows": [column_row(after, column, column.index == opened) for column in changed],
    }
    response = render(request, "cohorts/_draft_changes.html", context)
    response["HX-Reswap"] = "none"  # every part names the element that it replaces
    return response


def column_row(preview: Preview, column: ColumnPreview, is_open: bool) -> str:
    """Return the row of a column; it is the same for everybody until the column changes."""
    memo, key = preview.table.memo, ("row", column.index, is_open)
    old = memo.get(key)
    if old is None or old[0] is not column:
        context: dict[str, Any] = {"column": column, "is_open": is_open, "roles": ROLES}
        context |= {f"{what}_field": f"{what}-{column.index}" for what in _FIELDS}
        if is_open:
            context |= column_offers(preview, column)
        old = memo[key] = (column, render_to_string("cohorts/_draft_column.html", context))
    row: str = old[1]
    return row


def column_offers(preview: Preview, column: ColumnPreview) -> dict[str, Any]:
    """Return the options of an open column besides its answers: groups of numbers, a split."""
    table, index = preview.table, column.index
    if column.choice.part is not None:
        return {}
    facts = facts_of(table)[index]
    groups = (column.choice.groups or suggested(table, index)) if facts.numbers else None
    return {
        "several": facts.several,
        "is_split": any(
            c.choice.part is not None and c.choice.part.parent == index for c in preview.columns
        ),
        "groups": groups,
        "edges": "; ".join(groups.shown(edge) for edge in groups.edges) if groups else "",
        "sizes": group_sizes(table, index, groups) if groups else [],
    }


def _reading(draft: Draft, preview: Preview) -> dict[str, Any]:
    """Return the sheets of the file and the first rows of the sheet that is read."""
    source, layout = draft_source(draft), preview.table.layout
    lines = source.sheets[layout.sheet].lines[:HEADER_ROWS_SHOWN]
    return {
        "sheets": [sheet.name or _("the file") for sheet in source.sheets],
        "layout": layout,
        "lines": [(line.number, line.cells[:8], len(line.cells) > 8) for line in lines],
    }


def _first_rows(preview: Preview) -> dict[str, Any]:
    """Return the file's first rows without ignored columns, which may hold names."""
    n_columns = preview.table.n_columns
    used = [
        column.index
        for column in preview.columns[:n_columns]
        if column.choice.role not in (Role.IGNORE, *IDENTITY)
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
