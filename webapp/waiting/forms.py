"""Forms of waiting lists: the order, a move by hand with its reason, and acts on offers."""

from typing import Any

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from webapp.common.forms import TypedForm, field_of
from webapp.housing.models import OrderRule, Placement
from webapp.housing.models.waiting import (
    DEFAULT_HOURS,
    MAX_HOURS,
    MAX_SEED,
    MAX_VALUES,
    MAX_WHY,
)
from webapp.translation.lazy import format_lazy, gettext_lazy
from webapp.waiting.selectors import choices_of_rooms

MAX_REASON = 160


class HoursField(forms.IntegerField):
    """Hours from now until a deadline."""

    def __init__(self, label: str) -> None:
        sentence = format_lazy(
            gettext_lazy("A deadline is 1 to {most} hours away."), most=MAX_HOURS
        )
        super().__init__(
            label=label,
            min_value=1,
            max_value=MAX_HOURS,
            initial=DEFAULT_HOURS,
            error_messages={
                "required": sentence,
                "invalid": sentence,
                "min_value": sentence,
                "max_value": sentence,
            },
        )


class WaitingListForm(TypedForm):
    """The order of a waiting list, and how its beds are offered."""

    refused_field = "rule"
    rule = forms.ChoiceField(
        label=gettext_lazy("Order"),
        choices=OrderRule.choices,
        widget=forms.RadioSelect,
        help_text=gettext_lazy("Students whom staff moved by hand stay first or last."),
    )
    column = forms.ChoiceField(
        label=gettext_lazy("Column of the survey"),
        required=False,
        help_text=gettext_lazy("For the order by a column."),
    )
    values = forms.CharField(
        label=gettext_lazy("Values that come first"),
        required=False,
        max_length=MAX_VALUES,
        help_text=gettext_lazy(
            "In order, separated by commas, such as Senior, Junior. Other values follow."
        ),
    )
    seed = forms.CharField(
        label=gettext_lazy("Seed of the lottery"),
        required=False,
        max_length=MAX_SEED,
        help_text=gettext_lazy(
            "Students read it on their page. If it is empty, a random one is chosen."
        ),
    )
    hours = HoursField(gettext_lazy("Hours to answer an offer"))
    is_automatic = forms.BooleanField(
        label=gettext_lazy(
            "Offer a bed to the next student if one declines or does not answer in time"
        ),
        required=False,
    )
    skips_unreachable = forms.BooleanField(
        label=gettext_lazy("Skip students without an e-mail"),
        required=False,
        help_text=gettext_lazy("Otherwise staff are asked to phone them."),
    )

    def __init__(self, *args: Any, placement: Placement, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        columns = [
            ("", gettext("No column")),
            *((name, name) for name in placement.cohort.constraints),
        ]
        field_of(self, "column", forms.ChoiceField).choices = columns


class MoveForm(TypedForm):
    """The hall and the kind of room that a student with a bed waits for."""

    refused_field = "hall"
    hall = forms.ChoiceField(label=_("Hall"), required=False)
    beds = forms.ChoiceField(label=_("Kind of room"), required=False)

    def __init__(self, *args: Any, placement: Placement, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        halls, kinds = choices_of_rooms(placement)
        field_of(self, "hall", forms.ChoiceField).choices = [
            ("", _("Any hall")),
            *((hall, hall) for hall in halls),
        ]
        field_of(self, "beds", forms.ChoiceField).choices = [
            ("", _("Any kind")),
            *((beds, ngettext("%(n)d bed", "%(n)d beds", beds) % {"n": beds}) for beds in kinds),
        ]

    def clean_beds(self) -> int:
        """Return the number of beds of the wished kind; 0 for any."""
        return int(self.cleaned_data["beds"] or 0)


class StaffMoveForm(MoveForm):
    """The same, for a student whom staff name."""

    field_order = ("student", "hall", "beds")
    student = forms.CharField(
        max_length=200,
        help_text=gettext_lazy(
            "Number, name or e-mail of a student with a bed. The student keeps the bed until "
            "another one is accepted."
        ),
        error_messages={"required": gettext_lazy("Name a student.")},
        label=gettext_lazy("Student"),
    )


class TurnForm(TypedForm):
    """A student's new place on the waiting list, with the reason."""

    refused_field = "reason"
    to = forms.ChoiceField(
        label=gettext_lazy("New place"),
        choices=[("first", gettext_lazy("First")), ("last", gettext_lazy("Last"))],
        widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose first or last.")},
    )
    reason = forms.CharField(
        max_length=MAX_REASON,
        help_text=gettext_lazy(
            "Everybody who sees the history reads it. Write no medical details."
        ),
        error_messages={"required": gettext_lazy("Write a reason. The history keeps it.")},
        label=gettext_lazy("Reason"),
    )


class OfferForm(TypedForm):
    """The offer of a bed to the student whom the page named."""

    refused_field = "hours"
    number = forms.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        widget=forms.HiddenInput,
        error_messages={"required": gettext_lazy("Nobody may live there. Nothing was offered.")},
    )
    hours = HoursField(gettext_lazy("Hours to answer"))


class AnswerForm(TypedForm):
    """An answer that staff took by phone."""

    refused_field = "answer"
    answer = forms.ChoiceField(
        label=gettext_lazy("The student said"),
        choices=[
            ("accept", gettext_lazy("Yes: the student takes the bed")),
            ("decline", gettext_lazy("No")),
        ],
        widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose what the student said.")},
    )


class WithdrawForm(TypedForm):
    """The reason why an offer is withdrawn."""

    refused_field = "why"
    why = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_WHY,
        help_text=gettext_lazy(
            "Staff read it in the list of offers. The student gets a mail without it."
        ),
        error_messages={
            "required": gettext_lazy("Write why. Staff read it in the list of offers.")
        },
    )


class ExtendForm(TypedForm):
    """A new deadline."""

    refused_field = "hours"
    hours = HoursField(gettext_lazy("Hours from now"))
