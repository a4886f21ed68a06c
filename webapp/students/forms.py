"""Forms of the page of a student."""

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from webapp.common.forms import BackForm, NumberField, SwitchField, TypedForm
from webapp.students.models import MAX_NOTE


class NoteForm(TypedForm):
    """The text of a note."""

    refused_field = "text"
    text = forms.CharField(
        label=_("New note"),
        max_length=MAX_NOTE,
        error_messages={
            "required": _("The note is empty. Nothing was saved."),
            "max_length": format_lazy(
                _("The note is longer than {most} characters. Shorten it."), most=f"{MAX_NOTE:,}"
            ),
        },
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class NoteActForm(TypedForm):
    """The note of an act, from a page of an old version."""

    note = NumberField()


class HideNamesForm(BackForm):
    """The switch that hides the names of students, and the page that it was pressed on."""

    hide = SwitchField()
    back = forms.CharField(required=False, widget=forms.HiddenInput)  # of any length
