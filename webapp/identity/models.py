"""Identity providers of organisations, and the accounts and sessions that they began."""

from allauth.socialaccount.models import SocialApp
from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.accounts.models import Organisation, Role, User, new_sign_in_code
from webapp.common.models import OrganisationOwned
from webapp.encryption.fields import SealedJSONField


def new_key() -> str:
    """Return a new key for a provider's URLs: never reused, so no account changes hands."""
    return new_sign_in_code()


class Protocol(models.TextChoices):
    """Protocol of a provider; the values are allauth's names."""

    OPENID_CONNECT = "openid_connect", _("OpenID Connect")
    SAML = "saml", _("SAML 2.0")


class IdentityProvider(OrganisationOwned):
    """An identity provider that vouches for the people of one organisation.

    ``role_claim`` names the claim (attribute) whose values give roles, one value a line: a person
    gets the highest role with a listed value. Everybody else gets ``others_role``; if empty,
    nobody else may sign in. ``student_claim`` identifies students. ``verifies_emails``: treat an
    address as verified if the provider does not state it.
    """

    key = models.CharField(max_length=16, unique=True, default=new_key, editable=False)
    name = models.CharField(max_length=60)
    protocol = models.CharField(max_length=16, choices=Protocol.choices)
    is_on = models.BooleanField(default=False)
    server_url = models.URLField(max_length=500, blank=True)
    client_id = models.CharField(max_length=191, blank=True)
    secret = SealedJSONField(default="")
    saml = models.JSONField(default=dict)
    role_claim = models.CharField(max_length=200, default="groups")
    administrators = models.TextField(blank=True)
    staff = models.TextField(blank=True)
    viewers = models.TextField(blank=True)
    others_role = models.CharField(max_length=16, choices=Role.choices, blank=True)
    student_claim = models.CharField(max_length=200, blank=True)
    takes_students = models.BooleanField(default=False)
    trust_days = models.PositiveSmallIntegerField(default=30)
    verifies_emails = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="provider_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def as_app(self) -> SocialApp:
        """Return the provider as an unsaved SocialApp of allauth; the row is our own."""
        common = {"provider": self.protocol, "provider_id": self.key, "name": self.name[:40]}
        if self.protocol == Protocol.OPENID_CONNECT:
            settings = {"server_url": self.server_url.rstrip("/"), "oauth_pkce_enabled": True}
            return SocialApp(
                **common, client_id=self.client_id, secret=self.secret, settings=settings
            )
        return SocialApp(
            **common,
            client_id=self.key,
            settings={
                "idp": self.saml,
                "attribute_mapping": _ATTRIBUTES,
                "advanced": {"want_assertion_signed": True, "reject_idp_initiated_sso": True},
            },
        )


# Attributes that never change for a person; without them, the provider's name id counts.
_ATTRIBUTES = {
    "uid": [
        "urn:oasis:names:tc:SAML:attribute:subject-id",
        "urn:oasis:names:tc:SAML:attribute:pairwise-id",
    ],
}


class ProviderAccount(models.Model):
    """An account that a provider created.

    ``checked_at`` is the time at which the provider last vouched for the person. ``is_lost``: the
    provider refused to, which disabled the account until it vouches again. One disabled by an
    administrator stays disabled.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="provider_account")
    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="people")
    checked_at = models.DateTimeField()
    is_lost = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.user} by {self.provider}"


class ProviderSession(models.Model):
    """A session that began at a provider: of a person, or (without ``user``) of a student."""

    provider = models.ForeignKey(
        IdentityProvider, on_delete=models.CASCADE, related_name="sessions"
    )
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    subject = models.CharField(max_length=255, db_index=True)
    sid = models.CharField(max_length=255, blank=True, db_index=True)
    began_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"session of {self.provider}"


class SecondFactorDuty(models.Model):
    """An organisation whose local people must have a second factor."""

    organisation = models.OneToOneField(
        Organisation, on_delete=models.CASCADE, related_name="second_factor_duty"
    )

    def __str__(self) -> str:
        return f"second factor at {self.organisation}"
