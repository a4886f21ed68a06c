"""Form of an API token."""

from django import forms

LIVES = [("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "Until revoked")]


class TokenForm(forms.Form):
    """Form for a new token: its purpose, lifetime and rights."""

    name = forms.CharField(
        max_length=80, help_text="Where it will be used, such as “nightly sync”."
    )
    days = forms.ChoiceField(label="Works for", choices=LIVES, initial="90", required=False)
    may_change = forms.BooleanField(
        label="May change things",
        required=False,
        help_text="Without this it only reads. A token never has more rights than you.",
    )
