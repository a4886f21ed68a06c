"""The page of one student, its notes, and the switch that hides names."""

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import are_hidden, shown_names
from webapp.common.acts import passed_on
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.sessions import NAMES_HIDDEN
from webapp.common.toasts import attempt, toast
from webapp.students import services
from webapp.students.audit_lines import audit_of
from webapp.students.forms import HideNamesForm, NoteActForm, NoteForm
from webapp.students.models import MAX_NOTE, StudentNote
from webapp.students.selectors import other_years, student_context
from webapp.students.services import NoteError, note_add
from webapp.translation.lazy import gettext_lazy

_MOVED = {"edit": "students:note-edit", "delete": "students:note-delete"}
GONE = gettext_lazy("This note was deleted meanwhile.")


def find_student(request: SignedInRequest, uuid: str, number: int) -> Student:
    """Return a student of the user's organisation or answer 404."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    rows = Student.objects.select_related("cohort", "past_room")
    return get_object_or_404(rows, cohort=cohort, number=number)


@require_safe
@viewer_required
def student(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Show everything about a student that the person may see."""
    return _show(request, find_student(request, uuid, number))


def _show(
    request: SignedInRequest, found: Student, form: NoteForm | None = None, edited: int = 0
) -> HttpResponse:
    """Return the page; ``form`` holds a note as it was typed, ``edited`` is the note's key."""
    names = shown_names(request.user, found.cohort, is_hidden=are_hidden(request))
    request.__dict__.setdefault("_shown_names", {})[found.cohort_id] = names  # one audit line
    if request.user.is_staff_member:
        audit(request.user, "looked at a student", found.cohort, student=found.label)
    context = student_context(request.user, found, names)
    if request.user.is_administrator and request.GET.get("log"):
        context["audit"] = audit_of([found, *other_years(request.user, found)])
    context |= {
        "max_note": MAX_NOTE,
        "new_form": form if form is not None and not edited else NoteForm(auto_id="note-%s"),
        "edit_form": form,
        "edited": edited,
    }
    status = form.status if form is not None else 200
    return render(request, "students/student.html", context, status=status)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def note_new(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Add a note about a student."""
    found = find_student(request, uuid, number)
    form = NoteForm.typed(request, auto_id="note-%s")
    if form.submit(request, partial(note_add, user=request.user, student=found)):
        toast(request, _("The note was saved."))
        return redirect("students:student", uuid, number)
    return _show(request, found, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def note_change(request: SignedInRequest, uuid: str, number: int, note_id: int) -> HttpResponse:
    """Edit one's own note."""
    found = find_student(request, uuid, number)
    note = _note(request, note_id)
    if note is None or note.author_id != request.user.pk:
        form = NoteForm.typed(request, auto_id="note-%s")
        if form.is_bound:
            why = GONE if note is None else _("Only its author can edit a note.")
            form.add_error(
                None, _("%(why)s Nothing was changed; save it as a new note.") % {"why": why}
            )
        return _show(request, found, form)
    form = NoteForm.typed(request, auto_id="edit-%s", initial={"text": note.text})
    if form.submit(request, partial(services.note_edit, user=request.user, note=note)):
        toast(request, _("The note was changed."))
        return redirect("students:student", uuid, number)
    return _show(request, found, form, note.pk)


@require_POST
@staff_required
def note_delete(request: SignedInRequest, uuid: str, number: int, note_id: int) -> HttpResponse:
    """Delete one's own note, or any as an administrator."""
    find_student(request, uuid, number)

    def act() -> None:
        note = _note(request, note_id)
        if note is None:
            raise NoteError(GONE)
        services.note_delete(user=request.user, note=note)

    attempt(request, act, _("The note was deleted."))
    return redirect("students:student", uuid, number)


def _note(request: SignedInRequest, key: int) -> StudentNote | None:
    rows = StudentNote.objects.select_related("student__cohort")
    return rows.filter(student__cohort__organisation=request.user.organisation, pk=key).first()


@require_POST
@staff_required
def note(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Repeat an act at its own address; until version 0.2 this address took three of them."""
    find_student(request, uuid, number)
    moved = passed_on(request, {"add": "students:note-new"}, uuid, number)
    form = NoteActForm.typed(request)
    if moved is None and form.is_valid():
        moved = passed_on(request, _MOVED, uuid, number, form.cleaned_data["note"])
    if moved is not None:
        return moved
    toast(request, _("There is no such action."), error=True)
    return redirect("students:student", uuid, number)


@require_POST
@viewer_required
def hide_names(request: SignedInRequest) -> HttpResponse:
    """Hide the names of students on all pages of this session, or show them again."""
    form = HideNamesForm.typed(request)

    def act(*, hide: bool, back: str) -> None:
        request.session[NAMES_HIDDEN] = hide

    form.press(request, act)
    back = form.back_to
    is_safe = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return redirect(back if is_safe and back.startswith("/") else reverse("common:home"))
