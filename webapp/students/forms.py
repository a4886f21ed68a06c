"""Forms of the page of a student."""

from django import forms

from webapp.common.forms import TypedForm
from webapp.students.models import MAX_NOTE


class NoteForm(TypedForm):
    """The text of a note."""

    refused_field = "text"
    text = forms.CharField(
        label="New note",
        max_length=MAX_NOTE,
        error_messages={
            "required": "The note is empty. Nothing was saved.",
            "max_length": f"The note is longer than {MAX_NOTE:,} characters. Shorten it.",
        },
        widget=forms.Textarea(attrs={"rows": 3}),
    )
