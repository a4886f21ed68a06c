"""Forms of the page of requests: each act names requests or students, never places in a list."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from webapp.cohorts.models import Cohort
from webapp.common.forms import (
    OLD_PAGE,
    BackForm,
    ManyField,
    NumberField,
    NumbersField,
    ObjectField,
    TypedForm,
    field_of,
)
from webapp.housing.forms import RulesForm
from webapp.housing.models import Placement

CHOOSE_ONE = gettext_lazy("Choose at least one request first.")
_NUMBERS = re.compile(r"\d{1,9}(?:-\d{1,9})*")


def numbers_in(text: str) -> list[int]:
    """Return the numbers of a text such as 1001-1002; raise ValidationError for anything else."""
    if not (text.isascii() and _NUMBERS.fullmatch(text)):
        raise ValidationError(OLD_PAGE)
    return [int(part) for part in text.split("-")]


class MembersForm(BackForm):
    """An act on one group, named by its students, or on all groups."""

    members = forms.CharField(required=False, max_length=5_000, widget=forms.HiddenInput)

    def clean_members(self) -> list[int] | None:
        """Return the students of the group; None for all groups."""
        text = self.cleaned_data["members"]
        return numbers_in(text) if text else None


class PairsForm(BackForm):
    """Chosen requests, each named by its two students: asker-target."""

    pair = ManyField(error_messages={"required": CHOOSE_ONE})

    def clean_pair(self) -> list[tuple[int, int]]:
        """Return the chosen pairs; one that cannot be read refuses all of them."""
        chosen = [numbers_in(text) for text in self.cleaned_data["pair"]]
        if any(len(pair) != 2 for pair in chosen):
            raise ValidationError(OLD_PAGE)
        return [(first, second) for first, second in chosen]


class KeepForm(BackForm):
    """Left-out requests to count again: some by key, or all."""

    request = NumbersField(required=False)
    all = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """Return the keys as ``keys``: None for all requests."""
        found = super().clean() or {}
        keys = None if found.pop("all", False) else found.pop("request", None)
        found.pop("request", None)
        if keys == []:
            raise ValidationError(CHOOSE_ONE)
        return found | {"keys": keys}


class SettleForm(BackForm):
    """The student whom a request means."""

    refused_field = "answer"
    answer = forms.CharField(
        label=gettext_lazy("Student"),
        max_length=200,
        error_messages={"required": gettext_lazy("Give the student's id, e-mail or name.")},
        widget=forms.TextInput(
            attrs={"class": "id-input", "placeholder": gettext_lazy("Name or S-1042")}
        ),
    )


class CountForm(RulesForm):
    """How requests count in one of the cohort's placements."""

    placement = ObjectField(
        Placement.objects.none(),
        error_messages={
            "required": gettext_lazy("Choose a placement first."),
            "invalid_choice": gettext_lazy(
                "This placement is not of this cohort, or was removed meanwhile."
            ),
        },
        label=gettext_lazy("Placement"),
    )

    def __init__(self, *args: Any, cohort: Cohort, **kwargs: Any) -> None:
        super().__init__(*args, cohort=cohort, **kwargs)
        field_of(self, "placement", ObjectField).queryset = cohort.placements.all()


class OldActForm(TypedForm):
    """An act as pages of versions before 0.2 sent it."""

    act = forms.CharField(required=False, max_length=40)
    request = NumberField(required=False)
    answer = forms.CharField(required=False)
    group = forms.CharField(required=False)
