"""Forms of cohorts."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.cohorts.late_files import EMAIL, ID, NAME
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import constraint_groups
from webapp.common.forms import ActField, NumberField, ObjectField, TypedForm, field_of
from webapp.common.parameters import MAX_DIGITS

CHOSEN_FOR_YOU = {
    "inputmode": "numeric",
    "placeholder": gettext_lazy("chosen for you"),
    "class": "input--row",
}


class SeedForm(TypedForm):
    """The seed of a random split or simulation; None if the product is to choose it."""

    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        required=False,
        min_value=0,
        max_value=10**MAX_DIGITS - 1,
        widget=forms.TextInput(attrs=CHOSEN_FOR_YOU),
        help_text=gettext_lazy("A whole number. The same seed gives the same result."),
    )


class SimulateForm(SeedForm):
    """The rule columns in which simulated pairs agree, and the seed."""

    same = forms.MultipleChoiceField(
        label=gettext_lazy("Only pairs with the same"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    field_order = ("same", "seed")

    def __init__(self, *args: Any, cohort: Cohort, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        columns = [(name, name) for name in cohort.same_columns]
        field_of(self, "same", forms.MultipleChoiceField).choices = columns
        if not columns:
            self.fields["same"].widget = forms.MultipleHiddenInput()


class ImportForm(TypedForm):
    """The name of the cohort that a file becomes, and whether its requests are kept."""

    refused_field = "name"
    name = forms.CharField(
        label=gettext_lazy("Name of the cohort"),
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Such as “First-years 2026”."),
    )
    keep_requests = forms.BooleanField(required=False)
    version = NumberField(required=False)


class LateArrivalForm(TypedForm):
    """A student who joins a cohort late: identity, rule columns and answers."""

    id = forms.CharField(
        label=gettext_lazy("Id in your housing system"),
        error_messages={
            "required": gettext_lazy("This student has no id. Give the id of your housing system.")
        },
    )
    email = forms.CharField(
        label=gettext_lazy("E-mail"), required=False, max_length=254, widget=forms.EmailInput()
    )
    name = forms.CharField(label=gettext_lazy("Name"), required=False, max_length=200)

    def __init__(self, *args: Any, cohort: Cohort, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lists: list[tuple[str, list[str]]] = []
        self.columns = {"id": ID, "email": EMAIL, "name": NAME}
        for k, (name, values) in enumerate(constraint_groups(cohort)):
            known = f"late-r{k}-values"
            self.lists.append((known, [value for value, _ in values if value]))
            self.columns[f"r{k}"] = name
            self.fields[f"r{k}"] = forms.CharField(
                label=name,
                required=False,
                widget=forms.TextInput(attrs={"list": known, "autocomplete": "off"}),
            )
        for k, question in enumerate(cohort.questions):
            levels = [(level, level) for level in question["levels"]]
            self.columns[f"q{k}"] = question["name"]
            self.fields[f"q{k}"] = forms.ChoiceField(
                label=question["name"],
                required=False,
                choices=[("", _("Not answered")), *levels],
                error_messages={
                    "invalid_choice": _("“%(value)s” is not an answer to this question.")
                },
            )

    def field_named(self, name: str) -> str:
        """Return the field of a column that a refusal names."""
        return next((field for field, column in self.columns.items() if column == name), name)

    @property
    def row(self) -> dict[str, str]:
        """The student as a row of a file of late arrivals."""
        return {column: self.cleaned_data[name] for name, column in self.columns.items()}


class SheetForm(TypedForm):
    """The sheet of a file, and the row of its header."""

    sheet = NumberField(required=False)
    header_row = NumberField(required=False)


class DraftVersionForm(TypedForm):
    """The version of an upload that the page showed."""

    version = NumberField(required=False)

    @property
    def seen(self) -> int:
        """The version; 0, which no upload has, if the page sent none or an unreadable one."""
        self.errors  # noqa: B018 - reads the fields, once
        return self.cleaned_data.get("version") or 0


class FileAct(StrEnum):
    """A change of how a file about students is read; a form of one column sends none."""

    USE = "use"
    SAME = "same"
    WITHOUT = "without"
    AS_BLANK = "as_blank"
    UNDO = "undo"


class FileChangeForm(DraftVersionForm):
    """A change of how a file about students is read."""

    action = ActField(FileAct, required=False)
    column = NumberField(required=False)
    use = forms.CharField(required=False, max_length=200)
    position = NumberField(required=False)
    key = forms.CharField(required=False, strip=False)
    row = NumberField(required=False)


class PairsAct(StrEnum):
    """A change of how a file of pairs is read; the form of its columns sends none."""

    COLUMNS = "columns"
    SAME = "same"
    SURE = "sure"
    ZEROS = "zeros"
    WITHOUT = "without"
    WITH = "with"
    UNDO = "undo"


class PairsChangeForm(DraftVersionForm):
    """A change of how a file of pairs is read; ``names`` are the fields of its columns."""

    action = ActField(PairsAct, required=False)
    position = NumberField(required=False)
    cell = forms.CharField(required=False, strip=False)
    unknown = NumberField(required=False)
    is_roster = forms.BooleanField(required=False)

    def __init__(self, *args: Any, names: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= {name: NumberField(required=False) for name in names}


class MovedForm(TypedForm):
    """The kind of file that an upload seems to be, and the cohort that it belongs to."""

    to = forms.CharField(required=False, max_length=100)
    cohort = ObjectField(
        Cohort.objects.none(),
        required=False,
        error_messages={
            "invalid_choice": gettext_lazy("This cohort was removed meanwhile. Choose another.")
        },
    )

    def __init__(self, *args: Any, cohorts: QuerySet[Cohort], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field_of(self, "cohort", ObjectField).queryset = cohorts
