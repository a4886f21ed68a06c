"""Forms of accounts."""

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.validators import UnicodeUsernameValidator

from webapp.accounts.models import Role, Theme, User


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": "The name and the password do not belong together.",
        "inactive": "This account is switched off. Ask an administrator of your organisation.",
    }


class SettingsForm(forms.ModelForm):
    """How the pages look and listen."""

    theme = forms.ChoiceField(label="Colours", choices=Theme.choices, widget=forms.RadioSelect)
    keyboard_shortcuts = forms.BooleanField(
        label="Keyboard shortcuts",
        required=False,
        help_text="Keys such as J, K and / act while you are not typing. Press ? for the list.",
    )

    class Meta:
        model = User
        fields = ["theme", "keyboard_shortcuts"]


class NewUserForm(forms.Form):
    """A new person of the administrator's organisation."""

    username = forms.CharField(
        label="Sign-in name",
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text="Letters, digits and @ . + - _ only.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.STAFF)

    def clean_username(self) -> str:
        """Spell a name as signing in does; refuse one taken, whatever its case and organisation."""
        name = User.normalize_username(self.cleaned_data["username"])
        self.fields["username"].run_validators(name)  # it may have become longer, or hold a space
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(f"The name {name} is taken. Choose another one.")
        return name


class RoleForm(forms.Form):
    """Another role for a person."""

    role = forms.ChoiceField(choices=Role.choices)
