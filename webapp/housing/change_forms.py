"""Forms of late changes: each act names the students, rooms and changes that it is about."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.common.forms import NumberField, TypedForm
from webapp.housing.errors import HousingError
from webapp.housing.forms import read_students


def _students(text: str, *, may_be_empty: bool = False) -> list[int]:
    try:
        return read_students([text], may_be_empty=may_be_empty)
    except HousingError as error:
        raise ValidationError(str(error)) from error


class VersionedForm(TypedForm):
    """An act on a placement at the version that the page showed; -1 if the page named none."""

    version = NumberField(required=False)

    def clean_version(self) -> int:
        """Return the version."""
        found = self.cleaned_data["version"]
        return -1 if found is None else int(found)


class WithdrawForm(VersionedForm):
    """The students who withdrew, by ids, e-mails or names."""

    refused_field = "students"
    students = forms.CharField(
        label=gettext_lazy("Students"),
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "S-1042, S-1077"}),
        help_text=gettext_lazy(
            "Ids on screen, numbers, e-mails or names, separated by commas or lines."
        ),
        error_messages={"required": gettext_lazy("Name at least one student.")},
    )


class StudentForm(VersionedForm):
    """One student, by the id on screen."""

    students = forms.CharField(
        max_length=100,
        error_messages={"required": gettext_lazy("Name at least one student.")},
        label=gettext_lazy("Students"),
    )

    def clean_students(self) -> int:
        """Return the student's number."""
        return _students(self.cleaned_data["students"])[0]


class StudentRoomForm(StudentForm):
    """A student and a room; without a room the placement chooses."""

    room = NumberField(required=False)


class ChangeForm(TypedForm):
    """The proposed changes to confirm."""

    change = NumberField(
        error_messages={"required": gettext_lazy("These changes were discarded meanwhile.")}
    )


class ProposeForm(TypedForm):
    """The price of a move, and the students who stay where they are."""

    refused_field = "price"
    price = forms.CharField(
        label=gettext_lazy("Score that a move must gain"),
        max_length=100,
        widget=forms.TextInput(
            attrs={"inputmode": "decimal", "class": "id-input", "data-price": True}
        ),
        help_text=gettext_lazy(
            "A person moves if that makes room for somebody, or gains more than this."
        ),
    )
    pinned = forms.CharField(required=False, max_length=50_000, widget=forms.HiddenInput)

    def clean_price(self) -> float:
        """Return the price of a move."""
        text = self.cleaned_data["price"]
        try:
            return float(text.replace(",", "."))
        except ValueError as error:
            raise ValidationError(
                _("“%(text)s” is no price of a move.") % {"text": text[:20]}
            ) from error

    def clean_pinned(self) -> list[int]:
        """Return the numbers of the students who stay."""
        return _students(self.cleaned_data["pinned"], may_be_empty=True)
