"""Writing, editing and deleting notes about students; each act has its audit line."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Student
from webapp.common.errors import Refusal
from webapp.students.models import MAX_NOTE, StudentNote


class NoteError(Refusal):
    """Refusal of a note, in one sentence."""


@transaction.atomic
def note_add(*, user: User, student: Student, text: str) -> StudentNote:
    """Add a note about a student."""
    note = StudentNote.objects.create(student=student, author=user, text=_checked(text))
    audit(user, "noted", student.cohort, student=student.label)
    return note


@transaction.atomic
def note_edit(*, user: User, note: StudentNote, text: str) -> None:
    """Change the text of one's own note."""
    if note.author_id != user.pk:
        raise NoteError(_("Only its author can edit a note. Nothing was changed."))
    note.text, note.edited_at = _checked(text), timezone.now()
    note.save(update_fields=["text", "edited_at"])
    audit(user, "edited a note", note.student.cohort, student=note.student.label)


@transaction.atomic
def note_delete(*, user: User, note: StudentNote) -> None:
    """Delete one's own note, or any note as an administrator."""
    if note.author_id != user.pk and not user.is_administrator:
        raise NoteError(_("Only its author or an administrator can delete a note."))
    audit(user, "deleted a note", note.student.cohort, student=note.student.label)
    note.delete()


def _checked(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise NoteError(_("The note is empty. Nothing was saved."))
    if len(text) > MAX_NOTE:
        raise NoteError(
            _("The note is longer than %(max_note)s characters. Shorten it.")
            % {"max_note": f"{MAX_NOTE:,}"}
        )
    return text
