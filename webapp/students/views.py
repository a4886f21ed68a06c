"""The page of one student, its notes, and the switch that hides names."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import are_hidden, shown_names
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.sessions import NAMES_HIDDEN
from webapp.common.toasts import toast
from webapp.students.audit_lines import audit_of
from webapp.students.models import MAX_NOTE, StudentNote
from webapp.students.selectors import other_years, student_context
from webapp.students.services import NoteError, note_add, note_delete, note_edit


def find_student(request: SignedInRequest, uuid: str, number: int) -> Student:
    """Return a student of the user's organisation or answer 404."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    rows = Student.objects.select_related("cohort", "past_room")
    return get_object_or_404(rows, cohort=cohort, number=number)


@require_safe
@viewer_required
def student(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Show everything about a student that the person may see."""
    found = find_student(request, uuid, number)
    names = shown_names(request.user, found.cohort, is_hidden=are_hidden(request))
    request.__dict__.setdefault("_shown_names", {})[found.cohort_id] = names  # one audit line
    if request.user.is_staff_member:
        audit(request.user, "looked at a student", found.cohort, student=found.label)
    context = student_context(request.user, found, names)
    if request.user.is_administrator and request.GET.get("log"):
        context["audit"] = audit_of([found, *other_years(request.user, found)])
    return render(request, "students/student.html", context | {"max_note": MAX_NOTE})


@require_POST
@staff_required
def note(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Add, edit or delete a note."""
    found = find_student(request, uuid, number)
    act, text = request.POST.get("act", ""), request.POST.get("text", "")
    try:
        if act == "add":
            note_add(user=request.user, student=found, text=text)
            toast(request, "The note was saved.")
        else:
            key = whole_number(request.POST.get("note", ""))
            rows = StudentNote.objects.select_related("student__cohort")
            own = rows.filter(student__cohort__organisation=request.user.organisation)
            chosen = None if key is None else own.filter(pk=key).first()
            if chosen is None:
                raise NoteError("This note was deleted meanwhile.")
            if act == "edit":
                note_edit(user=request.user, note=chosen, text=text)
                toast(request, "The note was changed.")
            elif act == "delete":
                note_delete(user=request.user, note=chosen)
                toast(request, "The note was deleted.")
            else:
                raise NoteError("There is no such action.")
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect("students:student", uuid, number)


@require_POST
@viewer_required
def hide_names(request: SignedInRequest) -> HttpResponse:
    """Hide the names of students on all pages of this session, or show them again."""
    request.session[NAMES_HIDDEN] = request.POST.get("hide") == "1"
    back = request.POST.get("back", "")
    is_safe = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return redirect(back if is_safe and back.startswith("/") else reverse("common:home"))
