"""Forms of letters; a refused form keeps all typed text."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import User
from webapp.common.forms import NumberField, ObjectField, TypedForm, field_of
from webapp.common.selectors import owned_by
from webapp.letters.models import Contact, LetterTemplate
from webapp.letters.services.questions import MAX_SUBJECT, MAX_TEXT

REPLY_HINT = gettext_lazy("Blank: to the sender's address of this installation.")
_ADDRESS_EXAMPLE = {"placeholder": "housing@university.example"}


class TemplateForm(TypedForm):
    """The texts of a letter and the address for answers."""

    name = forms.CharField(label=gettext_lazy("Name, for staff"), max_length=120)
    subject = forms.CharField(label=gettext_lazy("Subject"), max_length=150)
    text = forms.CharField(
        label=gettext_lazy("Letter"),
        max_length=10_000,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16, "class": "textarea letter-text"}),
        help_text=gettext_lazy(
            "A line that holds only fields, and nothing for a student, is left out of that "
            "student's letter."
        ),
    )
    reply_to = forms.CharField(
        label=gettext_lazy("Answers go to"),
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs=_ADDRESS_EXAMPLE),
        help_text=REPLY_HINT,
    )
    contact = forms.ChoiceField(
        label=gettext_lazy("Whose e-mail roommates read in [contacts]"),
        required=False,
        choices=Contact.choices,
        widget=forms.RadioSelect,
    )
    consent_column = forms.CharField(
        label=gettext_lazy("Column in which students said yes"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Share my e-mail")}),
        help_text=gettext_lazy("A rule column of the cohort. Blank or unclear counts as no."),
    )


class QuestionForm(TypedForm):
    """The mail that asks students whom their requests mean.

    ``seen`` is how often the page showed that they were asked.
    """

    request = NumberField(required=False)
    seen = NumberField(required=False)
    subject = forms.CharField(label=gettext_lazy("Subject"), max_length=MAX_SUBJECT)
    text = forms.CharField(
        label=gettext_lazy("Mail"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 12, "class": "textarea letter-text"}),
    )
    reply_to = forms.CharField(
        label=gettext_lazy("Answers go to"),
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs=_ADDRESS_EXAMPLE),
        help_text=REPLY_HINT,
    )


class LetterForm(TypedForm):
    """An act on one of the organisation's letters."""

    letter = ObjectField(
        LetterTemplate.objects.none(),
        widget=forms.HiddenInput,
        error_messages={
            "required": gettext_lazy("Choose a letter first."),
            "invalid_choice": gettext_lazy("This letter was removed meanwhile."),
        },
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        letters = owned_by(LetterTemplate, user)
        field_of(self, "letter", ObjectField).queryset = letters


class SendForm(LetterForm):
    """Sending at the version of the placement that the page showed."""

    version = NumberField()


class LetterTestForm(LetterForm):
    """The address to which one student's letter goes as a test."""

    student = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    address = forms.CharField(
        label=gettext_lazy("Send this one to yourself"),
        max_length=254,
        widget=forms.EmailInput(attrs={"placeholder": "you@university.example"}),
    )


class ReturnedForm(LetterForm):
    """Addresses whose letters came back; ``asked`` is how many letters staff have confirmed."""

    addresses = forms.CharField(
        label=gettext_lazy("E-mails of the mails that bounced"),
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": gettext_lazy("Give the addresses whose letters came back.")},
    )
    asked = NumberField(required=False)

    def clean_addresses(self) -> list[str]:
        """Return the addresses, which lines, commas or semicolons part."""
        found = re.split(r"[,;\s]+", self.cleaned_data["addresses"])
        return [address for address in found if address]

    def ask(self, count: int) -> None:
        """Ask whether the letters to all these addresses came back."""
        self.add_error(
            "addresses",
            _(
                "%(count)s letters went to these addresses. Did all of them come back? "
                "Nothing was marked yet. Send the list again to mark them."
            )
            % {"count": f"{count:,}"},
        )
        self.show_value("asked", str(count))
