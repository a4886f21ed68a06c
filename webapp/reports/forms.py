"""Forms of rosters."""

from typing import Any

from django import forms

from webapp.common.forms import TypedForm
from webapp.housing.exports import COLUMNS


class RosterForm(TypedForm):
    """The columns of a roster: a place for each that is wanted, and its heading."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "StarRez import"}),
        help_text="A name that is kept already is replaced.",
    )
    ids = forms.ChoiceField(
        label="Values in CSV that begin with =, +, - or @",
        choices=[
            ("safe", "Mark them, so that no spreadsheet runs them"),
            ("exact", "Leave buildings, rooms and headings as they are"),
        ],
        initial="safe",
        required=False,
        widget=forms.RadioSelect,
        help_text="The mark is an apostrophe. Text that students typed, their ids included, is "
        "always marked in CSV and is always text in XLSX.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key, (heading, _) in COLUMNS.items():
            self.fields[f"place-{key}"] = forms.IntegerField(
                label=f"Place of {heading}",
                required=False,
                min_value=0,
                max_value=99,
                widget=forms.TextInput(
                    attrs={"inputmode": "numeric", "maxlength": 2, "placeholder": "–"}
                ),
            )
            self.fields[f"heading-{key}"] = forms.CharField(
                label=f"Heading of {heading}", required=False, max_length=60, initial=heading
            )

    @property
    def rows(self) -> list[tuple[str, forms.BoundField, forms.BoundField]]:
        """Each column with the fields of its place and its heading."""
        return [(key, self[f"place-{key}"], self[f"heading-{key}"]) for key in COLUMNS]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The chosen columns with their headings, in their order."""
        data = self.cleaned_data
        chosen = [(data[f"place-{key}"], key) for key in COLUMNS if data[f"place-{key}"]]
        return [(key, data[f"heading-{key}"]) for _, key in sorted(chosen)]
