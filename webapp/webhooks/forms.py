"""Forms of webhooks."""

from django import forms
from django.utils.translation import gettext_lazy as _

from webapp.common.events import EVENTS
from webapp.common.forms import NumberField, TypedForm


class NewWebhookForm(TypedForm):
    """The address of another program, and the events that it receives."""

    refused_field = "url"
    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://rooms.university.example/hook"}),
        help_text=_("A public address with https. Redirects are not followed."),
    )
    event = forms.MultipleChoiceField(
        label=_("Events"),
        choices=list(EVENTS.items()),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one of the events.")},
    )


class WebhookForm(NewWebhookForm):
    """Address, events and pause of a webhook."""

    is_paused = forms.BooleanField(label=_("Paused: nothing is queued or sent"), required=False)


class DeliveryForm(TypedForm):
    """A failed delivery to send again."""

    delivery = NumberField(error_messages={"required": _("Choose one.")})
