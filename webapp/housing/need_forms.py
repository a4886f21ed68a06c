"""Form of the question which rooms meet a need."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.common.forms import TypedForm, field_of
from webapp.housing.models.need import MAX_NEED


class NeedMeaningForm(TypedForm):
    """The offers of rooms that meet a need; ``none`` says that no room meets it."""

    refused_field = "offers"
    need = forms.CharField(max_length=MAX_NEED, widget=forms.HiddenInput)
    offers = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "invalid_choice": gettext_lazy("No room says “%(value)s” any more. Choose again."),
        },
    )
    none = forms.BooleanField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, offers: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = field_of(self, "offers", forms.MultipleChoiceField)
        field.choices = [(offer, offer) for offer in offers]
        field.label = _("Which rooms meet “%(value)s”? Rooms that say") % {
            "value": self["need"].value() or ""
        }

    def clean(self) -> dict[str, Any]:
        """Return the fields; nothing ticked counts only with the button that says so."""
        data = super().clean() or self.cleaned_data
        if data.get("none"):
            data["offers"] = []
        elif not data.get("offers") and "offers" not in self.errors:
            self.add_error(
                "offers",
                ValidationError(_("Tick what these rooms say, or press “No room meets it”.")),
            )
        return data
