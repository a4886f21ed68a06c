"""Forms of the pages of students; each page shows its own sentences beside its fields."""

from django import forms

from webapp.common.forms import ManyField, NumberField, TypedForm


class StudentForm(TypedForm):
    """An act of a student: ``action`` is the button, "" for a form that is sent without one."""

    action = forms.CharField(required=False, max_length=40)
    email = forms.CharField(required=False)

    def typed_in(self, name: str) -> str:
        """Return the text of a field, also of one that cannot be read."""
        return str(self[name].value() or "")


class EnterForm(TypedForm):
    """The code of a questionnaire, or a pasted personal link."""

    code = forms.CharField(required=False)


class BeginForm(StudentForm):
    """The start of a questionnaire by its code, or an address to which a link is mailed."""

    identifier = forms.CharField(required=False)


class StepForm(StudentForm):
    """One step through a questionnaire: a question by its number, and the answer to it."""

    n = NumberField(required=False)
    answer = ManyField(required=False)
    stays = forms.CharField(required=False, max_length=40)
    code = forms.CharField(required=False)
    sure = forms.CharField(required=False, max_length=40)
