"""Forms of providers."""

from enum import StrEnum
from typing import Any

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser

from webapp.accounts.models import Role
from webapp.common.forms import ActField, SwitchField, TypedForm, TypedModelForm
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.outbound import OutboundError, check_address

_COMMON = (
    "name", "is_on", "role_claim", "administrators", "staff", "viewers", "others_role",
    "trust_days", "verifies_emails", "takes_students", "student_claim",
)  # fmt: skip
_LINES = gettext_lazy("One value of the claim per line.")
MAX_METADATA = 500_000  # characters


class CodeForm(TypedForm):
    """The code of a second factor, at sign-in."""

    code = forms.CharField(max_length=200, strip=False)


class FactorAct(StrEnum):
    """An act on the user's own second factor."""

    BEGIN = "begin"
    RENEW = "renew"
    OFF = "off"


class SecondFactorForm(TypedForm):
    """Turning a second factor on by a code; turning it off or new recovery codes by a password."""

    action = ActField(FactorAct)
    code = forms.CharField(required=False, max_length=200, strip=False)
    password = forms.CharField(required=False, max_length=4_096, strip=False)


class DutyForm(TypedForm):
    """The switch that requires second factors of everybody with a password."""

    duty = SwitchField()


class ProviderForm(TypedModelForm):
    """Form fields that both protocols share."""

    others_role = forms.ChoiceField(
        label=gettext_lazy("Everybody else the provider knows"),
        required=False,
        choices=[
            ("", gettext_lazy("May not sign in")),
            (Role.VIEWER, gettext_lazy("Viewer")),
            (Role.STAFF, gettext_lazy("Staff")),
        ],
    )

    class Meta:
        model = IdentityProvider
        fields: tuple[str, ...] = _COMMON
        labels = {
            "name": gettext_lazy("Name on the sign-in page"),
            "is_on": gettext_lazy("People can sign in by it"),
            "role_claim": gettext_lazy("Claim that gives roles"),
            "administrators": gettext_lazy("Administrators"),
            "staff": gettext_lazy("Staff"),
            "viewers": gettext_lazy("Viewers"),
            "trust_days": gettext_lazy("Days without a sign-in until an account is switched off"),
            "verifies_emails": gettext_lazy("It checks every e-mail address itself"),
            "takes_students": gettext_lazy("Students of questionnaires can sign in by it"),
            "student_claim": gettext_lazy("Claim with the student number"),
        }
        help_texts = {
            "name": gettext_lazy(
                "“Sign in with …”, for visitors of your organisation's sign-in link."
            ),
            "role_claim": gettext_lazy(
                "Such as groups, or realm_access.roles; with SAML the attribute's name."
            ),
            "administrators": _LINES,
            "staff": _LINES,
            "viewers": _LINES,
            "trust_days": gettext_lazy(
                "0: never. API tokens of people who are switched off stop working too."
            ),
            "verifies_emails": (
                gettext_lazy(
                    "Only if nobody can change their own address there. Without it an "
                    "address counts where the provider sends email_verified, and invitations "
                    "find nobody else."
                )
            ),
            "student_claim": (
                gettext_lazy(
                    "Empty: preferred_username, eduPersonPrincipalName, uid or a checked e-mail."
                )
            ),
        }
        widgets = {
            name: forms.Textarea(attrs={"rows": 2})
            for name in ("administrators", "staff", "viewers")
        }

    def clean(self) -> dict[str, Any]:
        """Refuse a provider that would admit nobody."""
        data = super().clean() or {}
        gives = any(
            data.get(name, "").strip()
            for name in ("administrators", "staff", "viewers", "others_role")
        )
        if data.get("is_on") and not gives and not data.get("takes_students"):
            self.add_error(
                "staff", _("Say which values give a role. Without one nobody could sign in.")
            )
        return data


class OpenIDConnectForm(ProviderForm):
    """Form of a provider that uses OpenID Connect."""

    secret = forms.CharField(
        label=gettext_lazy("Client secret"),
        required=False,
        max_length=190,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Empty: the one that is kept."),
    )

    class Meta(ProviderForm.Meta):
        fields = ("name", "server_url", "client_id", "secret", *_COMMON[1:])
        labels = ProviderForm.Meta.labels | {
            "server_url": gettext_lazy("Issuer"),
            "client_id": gettext_lazy("Client id"),
        }
        help_texts = ProviderForm.Meta.help_texts | {
            "server_url": gettext_lazy("The address before /.well-known/openid-configuration."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["secret"] = ""
        for name in ("server_url", "client_id"):
            self.fields[name].required = True
        self.fields["server_url"].assume_scheme = "https"  # type: ignore[attr-defined]  # a URLField

    def clean_server_url(self) -> str:
        """Refuse an address that this server does not call."""
        url = self.cleaned_data["server_url"]
        try:
            check_address(url)
        except OutboundError as error:
            raise forms.ValidationError(str(error)) from error
        return url

    def clean_secret(self) -> str:
        """Return the stored secret if the field was left empty."""
        return self.cleaned_data["secret"] or self.instance.secret


class SamlForm(ProviderForm):
    """Form of a provider that uses SAML 2.0, given by its metadata."""

    metadata = forms.CharField(
        label=gettext_lazy("Metadata of the provider"),
        required=False,
        max_length=MAX_METADATA,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=gettext_lazy("The whole XML. Empty: the one that is kept."),
    )

    class Meta(ProviderForm.Meta):
        fields = ("name", "metadata", *_COMMON[1:])

    def clean_metadata(self) -> str:
        """Read entity id, URLs and certificates; refuse metadata without an identity provider."""
        text = self.cleaned_data["metadata"]
        if text:
            self.instance.saml = read_metadata(text)
        elif not self.instance.saml:
            raise forms.ValidationError(_("Paste the metadata."))
        return text


def read_metadata(text: str) -> dict[str, Any]:
    """Return {"entity_id", "sso_url", "slo_url", "x509cert"} of a provider's metadata.

    Raises ValidationError for text that is not the metadata of one identity provider.
    """
    try:
        ElementTree.fromstring(text)  # refuses entities before the other parser sees them
        found = OneLogin_Saml2_IdPMetadataParser.parse(text)["idp"]
        certificate = found.get("x509cert") or found["x509certMulti"]["signing"][0]
        kept = {
            "entity_id": found["entityId"],
            "sso_url": found["singleSignOnService"]["url"],
            "slo_url": found.get("singleLogoutService", {}).get("url", ""),
            "x509cert": certificate,
        }
    except DefusedXmlException as error:
        raise forms.ValidationError(_("Metadata holds no entities.")) from error
    except Exception as error:  # the parser raises errors of many kinds
        raise forms.ValidationError(
            _(
                "This is no metadata of an identity provider: it needs an entity id, a "
                "sign-on service by HTTP-Redirect and a signing certificate."
            )
        ) from error
    if not kept["sso_url"].startswith("https://") and not _is_private(kept["sso_url"]):
        raise forms.ValidationError(_("The sign-on service begins with https://."))
    return kept


def _is_private(url: str) -> bool:
    try:
        check_address(url)
    except OutboundError:
        return False
    return True


def form_of(protocol: str) -> type[ProviderForm]:
    """Return the form class of a protocol."""
    return SamlForm if protocol == Protocol.SAML else OpenIDConnectForm
