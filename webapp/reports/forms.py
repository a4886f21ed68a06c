"""Forms of rosters, and of what a follow-up teaches."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.common.forms import ObjectField, TypedForm, field_of
from webapp.housing.exports import COLUMNS, DATES, MAX_HEADING, OWN, Layout, usual_heading
from webapp.surveys.models import Questionnaire


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column of the form, with the fields of its place and its heading."""

    key: str
    usual: str
    place: forms.BoundField
    heading: forms.BoundField


class RosterForm(TypedForm):
    """The columns of a roster: a place for each that is wanted, and its heading.

    ``own`` are the keys of further columns, those of surveys; ``layout`` fills a new form.
    """

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("StarRez import")}),
        help_text=gettext_lazy("A roster of this name is replaced."),
        label=gettext_lazy("Name"),
    )
    dates = forms.ChoiceField(
        choices=[(key, example) for key, (example, _) in DATES.items()],
        initial="iso",
        required=False,
        help_text=gettext_lazy("How your system writes the first and the last day of a term."),
        label=gettext_lazy("Dates"),
    )
    ids = forms.ChoiceField(
        label=gettext_lazy("Values in CSV that begin with =, +, - or @"),
        choices=[
            ("safe", gettext_lazy("Mark them, so that no spreadsheet runs them")),
            (
                "exact",
                gettext_lazy("Leave buildings, rooms, terms and headings as they are"),
            ),
        ],
        initial="safe",
        required=False,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "The mark is an apostrophe. Text that students typed, their ids included, is "
            "always marked in CSV and is always text in XLSX."
        ),
    )

    def __init__(
        self, *args: Any, own: Sequence[str] = (), layout: Layout | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.keys = [*COLUMNS, *own]
        chosen = dict(layout.columns) if layout else {}
        places = {key: k for k, key in enumerate(chosen, start=1)}
        for key in self.keys:
            usual = usual_heading(key)
            self.fields[f"place-{_part(key)}"] = forms.IntegerField(
                label=_("Place of %(usual)s") % {"usual": usual},
                required=False,
                min_value=0,
                max_value=99,
                initial=places.get(key),
                widget=forms.TextInput(
                    attrs={"inputmode": "numeric", "maxlength": 2, "placeholder": "–"}
                ),
            )
            self.fields[f"heading-{_part(key)}"] = forms.CharField(
                label=_("Heading of %(usual)s") % {"usual": usual},
                required=False,
                max_length=MAX_HEADING,
                initial=chosen.get(key, usual[:MAX_HEADING]),
            )

    @property
    def rows(self) -> list[ColumnRow]:
        """The columns of every placement, with their fields."""
        return [self._row(key) for key in self.keys if key in COLUMNS]

    @property
    def own_rows(self) -> list[ColumnRow]:
        """The columns of surveys, with their fields."""
        return [self._row(key) for key in self.keys if key.startswith(OWN)]

    @property
    def has_own(self) -> bool:
        """Return True if a column of a survey is chosen or refused, so that its list is open."""
        return any(row.place.value() or row.place.errors for row in self.own_rows)

    def _row(self, key: str) -> ColumnRow:
        part = _part(key)
        return ColumnRow(key, usual_heading(key), self[f"place-{part}"], self[f"heading-{part}"])

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The chosen columns with their headings, in their order."""
        data = self.cleaned_data
        parts = [(key, _part(key)) for key in self.keys]
        chosen = [
            (data[f"place-{part}"], k, key, data[f"heading-{part}"])
            for k, (key, part) in enumerate(parts)
            if data[f"place-{part}"]
        ]
        return [(key, heading) for _, _, key, heading in sorted(chosen)]


def _part(key: str) -> str:
    """Return the part of a field's name that names a column; names of questions are digested."""
    if key in COLUMNS:
        return key
    return hashlib.sha256(key.encode()).hexdigest()[:12]


class LearnFromForm(TypedForm):
    """The follow-up whose couples become pairs, and the number of couples that the page showed."""

    asked = ObjectField(
        Questionnaire.objects.none(),
        error_messages={"invalid_choice": gettext_lazy("This follow-up was removed meanwhile.")},
    )
    pairs = forms.IntegerField(
        min_value=0,
        max_value=10**6,
        error_messages={"required": gettext_lazy("Load the page again first.")},
    )

    def __init__(self, *args: Any, asked: Sequence[Questionnaire], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keys = [one.pk for one in asked]
        field_of(self, "asked", ObjectField).queryset = Questionnaire.objects.filter(pk__in=keys)
