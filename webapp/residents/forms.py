"""Forms of personal pages and of the decisions of staff."""

from django import forms
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from webapp.common.forms import NumberField, TypedForm
from webapp.residents.models import MAX_ANSWER, MAX_ASK, MAX_CONTACT, AskState, Wish


class ContactForm(TypedForm):
    """Consent to share the contact with one roommate, or taking it back."""

    refused_field = "contact"
    roommate = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    shares = forms.BooleanField(required=False)
    contact = forms.CharField(required=False, max_length=MAX_CONTACT)


class AskForm(TypedForm):
    """A change that a student asks for."""

    refused_field = "text"
    wish = forms.ChoiceField(
        choices=Wish.choices,
        error_messages={
            "required": _("Choose what you want to change."),
            "invalid_choice": _("Choose what you want to change."),
        },
    )
    text = forms.CharField(
        max_length=MAX_ASK,
        error_messages={
            "required": _("Write why you ask for it."),
            "max_length": _("This text is too long. Shorten it."),
        },
    )


class DecideForm(TypedForm):
    """A decision of staff about a change that a student asked for."""

    refused_field = "answer"
    state = forms.ChoiceField(
        label=gettext_lazy("Decision"),
        choices=[
            (AskState.ACCEPTED.value, gettext_lazy("Agree: the office will change it")),
            (AskState.DECLINED.value, gettext_lazy("Decline")),
        ],
        widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose whether you agree or decline.")},
    )
    answer = forms.CharField(
        label=gettext_lazy("Answer to the student"),
        required=False,
        max_length=MAX_ANSWER,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("The student reads it on the personal page."),
    )
    version = NumberField()
