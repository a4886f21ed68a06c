"""Forms of accounts."""

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import NamesFor, Role, Theme, User
from webapp.accounts.names import check_alphabet
from webapp.common.forms import TypedForm, TypedModelForm


class SignInForm(AuthenticationForm):
    """Form of a sign-in name and a password."""

    error_messages = {
        "invalid_login": gettext_lazy("The name and the password do not belong together."),
        "inactive": gettext_lazy(
            "This account is switched off. Ask an administrator of your organisation."
        ),
    }


class SettingsForm(TypedModelForm):
    """Form of a user's settings for the look and behaviour of pages."""

    theme = forms.ChoiceField(
        label=gettext_lazy("Colours"), choices=Theme.choices, widget=forms.RadioSelect
    )
    keyboard_shortcuts = forms.BooleanField(
        label=gettext_lazy("Keyboard shortcuts"),
        required=False,
        help_text=gettext_lazy(
            "Keys such as J, K and / act while you are not typing. Press ? for the list."
        ),
    )

    class Meta:
        model = User
        fields = ["theme", "keyboard_shortcuts"]


class OrganisationForm(TypedForm):
    """Name, department and time zone of the organisation."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        error_messages={"required": gettext_lazy("The organisation needs a name.")},
    )
    department = forms.CharField(label=gettext_lazy("Department"), required=False, max_length=120)
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        required=False,
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Europe/Madrid"}),
        help_text=gettext_lazy(
            "Times on pages, and when questionnaires open and close. Empty: that of the server."
        ),
    )


class NamesForm(TypedForm):
    """The people to whom names of students are shown."""

    names_for = forms.ChoiceField(
        choices=NamesFor.choices,
        error_messages={
            "invalid_choice": gettext_lazy(
                "Choose staff and administrators, administrators only, or nobody."
            ),
            "required": gettext_lazy(
                "Choose staff and administrators, administrators only, or nobody."
            ),
        },
    )


class ActiveForm(TypedForm):
    """Form that allows or forbids a person to sign in."""

    active = forms.TypedChoiceField(
        choices=[("1", gettext_lazy("Yes")), ("0", gettext_lazy("No"))],
        coerce=lambda value: value == "1",
    )


class NewUserForm(TypedForm):
    """Form for a new person of the administrator's organisation."""

    username = forms.CharField(
        label=gettext_lazy("Sign-in name"),
        max_length=150,
        validators=[UnicodeUsernameValidator(), check_alphabet],
        help_text=gettext_lazy("Letters, digits and @ . + - _ only."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.STAFF, label=gettext_lazy("Role"))

    def clean_username(self) -> str:
        """Return the name as sign-in spells it; refuse one taken in any case and organisation."""
        name = User.normalize_username(self.cleaned_data["username"])
        self.fields["username"].run_validators(name)  # it may be longer now, or hold a space
        if User.objects.named(name).exists():
            raise forms.ValidationError(
                _("The name %(name)s is taken. Choose another one.") % {"name": name}
            )
        return name


class RoleForm(TypedForm):
    """Form for changing a person's role."""

    role = forms.ChoiceField(choices=Role.choices, label=gettext_lazy("Role"))
