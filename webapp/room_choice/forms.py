"""Forms of room choice."""

import json
from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import rule_groups
from webapp.common.forms import NumberField, TypedForm, field_of
from webapp.room_choice.models import MAX_NAME, MAX_SEED, ChoiceRound
from webapp.room_choice.services.rounds import MAX_MINUTES, MIN_MINUTES
from webapp.translation.lazy import gettext_lazy

MAX_SEEN = 32
MAX_GROUPS = 200  # answers that a round can be limited to


class ChooseForm(TypedForm):
    """The choice of a room, with what the page showed of the group."""

    seen = forms.CharField(required=False, max_length=MAX_SEEN)


class VersionForm(TypedForm):
    """An act on a round as a page showed it."""

    version = NumberField()


def _moment(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        error_messages={
            "invalid": gettext_lazy("Choose a day and a time."),
            "required": gettext_lazy("Choose a time."),
        },
    )


def _time_of_day(label: str) -> forms.TimeField:
    return forms.TimeField(
        label=label,
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        error_messages={"invalid": gettext_lazy("Choose a time of the day.")},
    )


class RoundForm(VersionForm):
    """A round: who chooses, when, and in which order."""

    refused_field = "name"
    name = forms.CharField(
        max_length=MAX_NAME,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Seniors")}),
        label=gettext_lazy("Name"),
    )
    who = forms.ChoiceField(
        label=gettext_lazy("Who chooses"),
        required=False,
        help_text=gettext_lazy(
            "Students who asked for each other choose together, if one of them is among "
            "these students."
        ),
        error_messages={"invalid_choice": gettext_lazy("Choose who takes part.")},
    )
    opens_at = _moment(gettext_lazy("Opens"))
    closes_at = _moment(gettext_lazy("Closes"))
    minutes = forms.IntegerField(
        label=gettext_lazy("Minutes of a slot"),
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        initial=30,
        help_text=gettext_lazy(
            "Groups are spread evenly over all slots between opening and closing."
        ),
    )
    day_from = _time_of_day(gettext_lazy("Slots of a day begin at"))
    day_to = _time_of_day(gettext_lazy("and end at"))
    stays_open = forms.BooleanField(
        label=gettext_lazy("A slot stays open until the round closes"),
        required=False,
        help_text=gettext_lazy("Students who miss the beginning can then still choose."),
    )
    rule = forms.ChoiceField(
        label=gettext_lazy("Order"),
        required=False,
        help_text=gettext_lazy(
            "A group counts by its best member. Within one answer a lottery decides."
        ),
        error_messages={"invalid_choice": gettext_lazy("Choose the order.")},
    )
    rule_values = forms.CharField(
        label=gettext_lazy("Answers, first to last, one a line"),
        required=False,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("Answers that are not named come last."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of the lottery"),
        min_value=0,
        max_value=MAX_SEED,
        help_text=gettext_lazy(
            "The same seed gives the same order. Publish it, and everybody can check."
        ),
    )

    def __init__(self, *args: Any, cohort: Cohort, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = rule_groups(cohort)
        self._known = {
            column: {one.value for one in groups if one.column == column}
            for column in cohort.constraints
        }
        field_of(self, "who", forms.ChoiceField).choices = [
            ("", _("All students without a room")),
            *(
                (json.dumps([one.column, one.value]), f"{one.column}: {one.value or 'blank'}")
                for one in groups[:MAX_GROUPS]
            ),
        ]
        field_of(self, "rule", forms.ChoiceField).choices = [
            ("", _("Lottery")),
            *(
                (column, _("%(column)s, then lottery") % {"column": column})
                for column in cohort.constraints
            ),
        ]

    def clean(self) -> dict[str, Any]:
        """Check that the answers of the order exist; return fields as the service takes them."""
        data = super().clean() or self.cleaned_data
        column, value = json.loads(data.pop("who", "") or '["", ""]')
        data["column"], data["value"] = column, value
        lines = [line.strip() for line in data.get("rule_values", "").splitlines()]
        wanted = list(dict.fromkeys(line for line in lines if line))
        known = self._known.get(data.get("rule", ""), set())
        unknown = [line for line in wanted if line not in known]
        if data.get("rule") and not wanted:
            answers = ", ".join(sorted(known - {""})[:20])
            words = _("Write the answers in their order, one a line. There are: %(answers)s.") % {
                "answers": answers
            }
            self.add_error("rule_values", words)
        elif data.get("rule") and unknown:
            answers = ", ".join(sorted(known - {""})[:20])
            words = _("No student answered “%(unknown)s”. There are: %(answers)s.") % {
                "unknown": unknown[0][:60],
                "answers": answers,
            }
            self.add_error("rule_values", words)
        data["rule_values"] = wanted
        return data


def initial_of(round: ChoiceRound | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first values of the form of a round; ``defaults`` are those of a new one."""
    if round is None:
        return {"version": 0, **defaults}
    names = ("name", "minutes", "stays_open", "rule", "seed", "version", "day_from", "day_to")
    initial: dict[str, Any] = {name: getattr(round, name) for name in names}
    initial["opens_at"] = _local(round.opens_at)
    initial["closes_at"] = _local(round.closes_at)
    initial["who"] = json.dumps([round.column, round.value]) if round.column else ""
    initial["rule_values"] = "\n".join(round.rule_values)
    return initial


def _local(moment: datetime | time) -> Any:
    return timezone.localtime(moment) if isinstance(moment, datetime) else moment


class PublishForm(VersionForm):
    """The publication of the slots of a round."""

    refused_field = "send_mail"
    send_mail = forms.BooleanField(
        label=gettext_lazy("Mail each student the slot and the personal link"), required=False
    )


class ExtendForm(VersionForm):
    """A later end of a round."""

    refused_field = "closes_at"
    closes_at = _moment(gettext_lazy("Closes"))


class EmptyForm(TypedForm):
    """The confirmed number of students who move out, on the version that the page showed."""

    people = NumberField()
    version = NumberField()
