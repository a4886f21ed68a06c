"""Forms of building lists."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from webapp.common.forms import ActField, NumberField, NumbersField, TypedForm
from webapp.housing.models import Room, RoomState
from webapp.housing.services.buildings import MAX_BEDS
from webapp.housing.services.many_rooms import WORDS
from webapp.translation.lazy import format_lazy, gettext_lazy

MAX_NEEDS, MAX_NEED = 20, 80
_BEDS = format_lazy(gettext_lazy("A room has 1 to {most} beds."), most=MAX_BEDS)
NO_STATE = gettext_lazy("A room is open, held back or offline.")
NAMED = gettext_lazy("A room needs a hall and a name.")


def read_needs(text: str) -> list[str]:
    """Return needs parted by commas; refuse a need that is too long, and too many needs."""
    needs = [" ".join(need.split()) for need in text.split(",")]
    found = list(dict.fromkeys(need for need in needs if need))
    if len(found) > MAX_NEEDS or any(len(need) > MAX_NEED for need in found):
        raise ValidationError(
            _("At most %(max_needs)s needs, of up to %(max_need)s letters each.")
            % {"max_needs": MAX_NEEDS, "max_need": MAX_NEED}
        )
    return found


class RoomForm(TypedForm):
    """One room of a building list."""

    hall = forms.CharField(
        label=gettext_lazy("Hall"), max_length=80, error_messages={"required": NAMED}
    )
    floor = forms.CharField(label=gettext_lazy("Floor"), required=False, max_length=20)
    name = forms.CharField(
        label=gettext_lazy("Room"), max_length=40, error_messages={"required": NAMED}
    )
    suite = forms.CharField(
        label=gettext_lazy("Suite"),
        required=False,
        max_length=40,
        help_text=gettext_lazy(
            "Such as “201”, for rooms that share an entrance, a bathroom or a living room. "
            "Rooms of one hall with the same name here form a suite. Blank: no suite."
        ),
    )
    capacity = forms.IntegerField(
        label=gettext_lazy("Beds"),
        min_value=1,
        max_value=MAX_BEDS,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), _BEDS),
    )
    max_capacity = forms.IntegerField(
        label=gettext_lazy("Beds with extra beds"),
        required=False,
        min_value=1,
        max_value=MAX_BEDS,
        help_text=gettext_lazy(
            "Such as 3 for a double that can hold a third bed. A placement uses extra beds "
            "last. Blank: no extra beds."
        ),
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), _BEDS),
    )
    designation = forms.CharField(
        label=gettext_lazy("Who may live there"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "A value of the column that a placement’s rules choose, such as “F” of Gender. "
            "Several columns: “Gender=F; Class year=1|2; Theme=Quiet”. Blank: anybody."
        ),
    )
    meets = forms.CharField(
        label=gettext_lazy("Needs it meets"),
        required=False,
        max_length=MAX_NEEDS * (MAX_NEED + 2),
        help_text=gettext_lazy("Separated by commas, such as “Accessible, Quiet”."),
    )
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=RoomState.choices,
        error_messages=dict.fromkeys(("required", "invalid_choice"), NO_STATE),
        help_text=gettext_lazy(
            "Nobody is placed into a room that is held back or offline. Students of drafts "
            "who live there need another room then."
        ),
    )
    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Such as “Held back for the RA” or “Water damage until 12 Sep”."),
    )

    def clean_meets(self) -> list[str]:
        """Return the needs; refuse a need that is too long, and too many needs."""
        return read_needs(self.cleaned_data["meets"])

    def clean(self) -> dict[str, Any]:
        """Return the values without repeated spaces."""
        found = super().clean() or {}
        return {
            name: " ".join(value.split()) if isinstance(value, str) else value
            for name, value in found.items()
        }

    @staticmethod
    def values_of(room: Room | None) -> dict[str, Any]:
        """Return the initial values for a room, or for a new room."""
        if room is None:
            return {"capacity": 2, "state": RoomState.OPEN}
        names = ("hall", "floor", "name", "suite", "capacity", "designation", "state", "note")
        most = room.max_capacity if room.extra_beds else None
        own = {"meets": ", ".join(room.meets), "max_capacity": most}
        return {name: getattr(room, name) for name in names} | own


class ManyRoomsForm(TypedForm):
    """New values for many rooms; only the ticked values are set, and a ticked blank clears one."""

    rooms = NumbersField(required=False)
    confirmed = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    change = forms.MultipleChoiceField(
        choices=list(WORDS.items()),
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": gettext_lazy("Tick what to change."),
            "invalid_choice": gettext_lazy("There is no such value of a room."),
        },
    )
    state = forms.ChoiceField(
        label=gettext_lazy("State"), required=False, choices=RoomState.choices
    )
    capacity = forms.IntegerField(
        label=gettext_lazy("Beds"), required=False, min_value=1, max_value=MAX_BEDS
    )
    max_capacity = forms.IntegerField(
        label=gettext_lazy("Beds with extra beds"), required=False, min_value=1, max_value=MAX_BEDS
    )
    designation = forms.CharField(
        label=gettext_lazy("Who may live there"), required=False, max_length=200
    )
    meets = forms.CharField(
        label=gettext_lazy("Needs they meet"), required=False, max_length=MAX_NEEDS * (MAX_NEED + 2)
    )
    suite = forms.CharField(label=gettext_lazy("Suite"), required=False, max_length=40)
    note = forms.CharField(label=gettext_lazy("Note"), required=False, max_length=120)

    def clean_meets(self) -> list[str]:
        """Return the needs; refuse a need that is too long, and too many needs."""
        return read_needs(self.cleaned_data["meets"])

    def clean(self) -> dict[str, Any]:
        """Return the values; refuse a ticked number that is blank."""
        found = super().clean() or {}
        chosen = found.get("change", [])
        for name, sentence in (
            ("capacity", _("A room has 1 to %(max_beds)s beds.") % {"max_beds": MAX_BEDS}),
            ("state", NO_STATE),
        ):
            if name in chosen and not found.get(name) and name not in self.errors:
                self.add_error(name, sentence)
        return found

    @property
    def values(self) -> dict[str, Any]:
        """The ticked values, as the service takes them."""
        found = {name: self.cleaned_data[name] for name in self.cleaned_data["change"]}
        return {
            name: " ".join(value.split()) if isinstance(value, str) else value
            for name, value in found.items()
        }

    @property
    def value_fields(self) -> list[tuple[str, forms.BoundField, bool]]:
        """Name, field and tick of every value."""
        ticked = self["change"].value() or []
        return [(name, self[name], name in ticked) for name in WORDS]


class ListNameForm(TypedForm):
    """The name of a building list."""

    refused_field = "name"
    name = forms.CharField(
        label=gettext_lazy("Name of the list"),
        max_length=120,
        error_messages={"required": gettext_lazy("The building list needs a name.")},
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Main campus 2026")}),
    )


class ImportedNameForm(ListNameForm):
    """The name of the building list that a file becomes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = _("Name of the building list")


class ColumnUseForm(TypedForm):
    """Another use of a column of a file."""

    column = NumberField()
    use = forms.CharField(required=False, max_length=100)


class StateForm(TypedForm):
    """Another state of the rooms that match, once their numbers are confirmed."""

    hall = forms.CharField(required=False, max_length=80)
    floor = forms.CharField(required=False, max_length=80)
    q = forms.CharField(required=False, max_length=80)
    state = ActField(RoomState, NO_STATE)
    confirmed = forms.CharField(required=False, max_length=100)
