"""Forms of decisions about rooms, students and pairs; each sends back the page that it was on."""

from enum import StrEnum
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from webapp.common.acts import filters_of
from webapp.common.forms import (
    OLD_PAGE,
    ActField,
    BackForm,
    ManyField,
    NumberField,
    NumbersField,
    TypedForm,
)
from webapp.common.parameters import whole_number
from webapp.housing.change_forms import VersionedForm
from webapp.housing.pairs.decisions import Decision
from webapp.translation.lazy import gettext_lazy

NO_DECISION = gettext_lazy("There is no such decision.")


class Act(StrEnum):
    """A decision about rooms or students."""

    ACCEPT = "accept"
    REOPEN = "reopen"
    LOCK = "lock"
    RELEASE = "release"
    EMPTY = "empty"
    KEEP = "keep"
    OPEN = "open"
    WITHDRAW = "withdraw"
    MOVE = "move"
    SWAP = "swap"


class Scope(StrEnum):
    """The rooms of an act: those that the form names, or all that match."""

    CHOSEN = "chosen"
    MATCHING = "matching"


class DraftAct(StrEnum):
    """An act on a draft of late changes."""

    CONFIRM = "confirm"
    DROP = "drop"
    DISCARD = "discard"


class ShownForm(BackForm, VersionedForm):
    """An act whose answer changes the page that it was pressed on."""

    then = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    confirmed = NumberField(required=False)

    def filters(self, *names: str) -> dict[str, str]:
        """Return those filters of the form's page that are set."""
        sent = filters_of(self.back_to)
        return {name: sent[name] for name in names if sent.get(name)}

    @property
    def seen(self) -> int:
        """The version that the page showed; -1 if it named none."""
        return int(self.cleaned_data.get("version", -1))


class DecideForm(ShownForm):
    """A decision about students, about rooms, or about all rooms that match."""

    act = ActField(Act, NO_DECISION)
    scope = ActField(Scope, OLD_PAGE, required=False)
    room = NumbersField(required=False)
    student = ManyField(required=False)
    to = forms.CharField(required=False, max_length=200)
    count = NumberField(required=False)


class DraftForm(BackForm, VersionedForm):
    """An act on a draft: confirm it for a number of people, discard it, or drop a student."""

    act = ActField(DraftAct)
    people = NumberField(required=False)
    student = forms.CharField(required=False, max_length=200)


class ComputeForm(TypedForm):
    """The minutes of processor time of a run; without a number the usual ones."""

    minutes = NumberField(required=False)


class LeaveOut(StrEnum):
    """The part that is left out of rules that contradict each other."""

    REQUESTS = "requests"
    LOCKS = "locks"
    NEVERS = "nevers"


class SolveForm(TypedForm):
    """One clash by its place in the list, or all; and what is left out of it."""

    clash = NumberField(required=False)
    leave = ActField(LeaveOut, required=False)


class PublishAct(StrEnum):
    """An act on the publication of a placement; the button that publishes sends none."""

    PUBLISH = "publish"
    WITHDRAW = "withdraw"


class PublishForm(VersionedForm):
    """Publish a placement, or withdraw its publication from a number of people."""

    action = ActField(PublishAct, required=False)
    people = NumberField(required=False)
    back = forms.CharField(required=False, max_length=100)


class VersionUseForm(TypedForm):
    """The content of a version as the page showed it."""

    digest = forms.CharField(required=False, max_length=200)


class VersionsField(ManyField):
    """Pairs at the versions that the page showed, each as KEY:VERSION."""

    def clean(self, value: Any) -> dict[int, int]:
        """Return {pair: version}; one that cannot be read refuses all of them."""
        versions = {}
        for text in super().clean(value):
            key, version = map(whole_number, text.partition(":")[::2])
            if key is None or version is None:
                raise ValidationError(OLD_PAGE)
            versions[key] = version
        return versions


class DecidePairsForm(BackForm):
    """A decision about marked pairs."""

    decision = ActField(Decision, NO_DECISION)
    pair = VersionsField(error_messages={"required": gettext_lazy("Mark at least one pair first.")})


class Typed(StrEnum):
    """The form of the rules in which students were typed."""

    PAIR = "pair"
    SINGLE = "single"


class RuleForm(BackForm):
    """A rule about one or two students, or about a column; ``typed_in`` is a form with names."""

    refused_field = "first"
    typed_in = ActField(Typed, OLD_PAGE, required=False)

    action = forms.CharField(
        max_length=40, error_messages={"required": gettext_lazy("There is no such rule.")}
    )
    first = forms.CharField(required=False, max_length=200)
    second = forms.CharField(required=False, max_length=200)
    column = forms.CharField(required=False, max_length=500)


class SwapForm(BackForm):
    """Two students who swap roommates, and the pairs that the page showed."""

    student = forms.CharField(required=False, max_length=200)
    partner = forms.CharField(required=False, max_length=200)
    pair = VersionsField(required=False)
