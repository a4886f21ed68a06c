"""Forms of the operations page."""

from django import forms

from webapp.common.forms import TypedForm
from webapp.translation.lazy import gettext_lazy

_NO_ADDRESS = gettext_lazy("That is not an e-mail address. Nothing was changed.")


class AlertForm(TypedForm):
    """The address that gets a mail when a fault begins, and when it is over."""

    address = forms.EmailField(
        label=gettext_lazy("E-mail address"),
        max_length=254,
        error_messages={"required": _NO_ADDRESS, "invalid": _NO_ADDRESS},
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
