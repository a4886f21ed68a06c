"""Forms of terms."""

from datetime import date
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator

from webapp.accounts.models import User
from webapp.common.forms import NumberField, ObjectField, TypedForm, field_of
from webapp.common.selectors import owned_by
from webapp.housing.models import Term
from webapp.housing.models.term import MAX_TERM_CODE, MAX_TERM_NAME
from webapp.translation.lazy import gettext_lazy as _

_DAYS = [
    MinValueValidator(date(1990, 1, 1), _("The year is before 1990. Check the day.")),
    MaxValueValidator(date(2100, 12, 31), _("The year is after 2100. Check the day.")),
]


def _day(label: str, **kwargs: Any) -> forms.DateField:
    return forms.DateField(
        label=label,
        **kwargs,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        validators=_DAYS,
    )


class TermForm(TypedForm):
    """A term with its first and last day."""

    refused_field = "name"
    name = forms.CharField(
        max_length=MAX_TERM_NAME,
        widget=forms.TextInput(attrs={"placeholder": _("Autumn 2026")}),
        label=_("Name"),
    )
    code = forms.CharField(
        label=_("Name in the student system"),
        required=False,
        max_length=MAX_TERM_CODE,
        help_text=_("For example 202710. If it is empty, rosters use the name."),
    )
    starts_on = _day(_("First day"))
    ends_on = _day(_("Last day"))


class TermField(ObjectField):
    """One of the terms of an organisation."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the name of a term with its days."""
        return str(obj.words)


class PlacementTermForm(TypedForm):
    """The term that a placement is for."""

    refused_field = "term"
    term = TermField(
        Term.objects.none(),
        required=False,
        empty_label=_("No term"),
        error_messages={"invalid_choice": _("This term was removed meanwhile. Choose another.")},
        label=_("Term"),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field_of(self, "term", TermField).queryset = owned_by(Term, user)


class DatesForm(TypedForm):
    """The first and the last day of a student's bed; blank is the day of the term."""

    refused_field = "arrives_on"
    arrives_on = _day(_("First day"), required=False)
    leaves_on = _day(_("Last day"), required=False)
    version = NumberField()
