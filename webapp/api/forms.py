"""Form of an API token."""

from django import forms
from django.utils.translation import gettext_lazy

from webapp.common.forms import TypedForm

LIVES = [
    ("30", gettext_lazy("30 days")),
    ("90", gettext_lazy("90 days")),
    ("365", gettext_lazy("1 year")),
    ("", gettext_lazy("Until revoked")),
]


class TokenForm(TypedForm):
    """Form for a new token: its purpose, lifetime and rights."""

    name = forms.CharField(
        max_length=80,
        help_text=gettext_lazy("Where it will be used, such as “nightly sync”."),
        label=gettext_lazy("Name"),
    )
    days = forms.ChoiceField(
        label=gettext_lazy("Works for"), choices=LIVES, initial="90", required=False
    )
    may_change = forms.BooleanField(
        label=gettext_lazy("May change things"),
        required=False,
        help_text=gettext_lazy(
            "Without this it only reads. A token never has more rights than you."
        ),
    )
