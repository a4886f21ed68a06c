"""Who may vouch for the people of an organisation, and which sessions a provider began."""

import secrets

from allauth.socialaccount.models import SocialApp
from django.db import models

from webapp.accounts.models import Organisation, Role, User
from webapp.common.encryption import SealedJSONField
from webapp.common.models import OrganisationOwned

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def new_key() -> str:
    """Return the name of a provider in addresses: never used again, so no account changes hands."""
    return "".join(secrets.choice(_LETTERS) for _ in range(12))


class Protocol(models.TextChoices):
    """How a provider is asked; the values are allauth's names."""

    OPENID_CONNECT = "openid_connect", "OpenID Connect"
    SAML = "saml", "SAML 2.0"


class IdentityProvider(OrganisationOwned):
    """A provider that vouches for the people of one organisation.

    ``role_claim`` names the claim (attribute) whose values give roles: a person gets the highest
    role of which a value is listed, one value a line. ``others_role`` is what everybody else gets;
    empty: nobody else may sign in. ``student_claim`` is what students are known by.
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
        """Return it as allauth knows providers; the row is ours, so nothing is saved there."""
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


# What never changes for a person; without it, what the provider calls them (the name id) counts.
_ATTRIBUTES = {
    "uid": [
        "urn:oasis:names:tc:SAML:attribute:subject-id",
        "urn:oasis:names:tc:SAML:attribute:pairwise-id",
    ],
}


class ProviderAccount(models.Model):
    """A person who was made by a provider.

    ``checked_at`` is when the provider last vouched for them; ``is_lost`` says that it refused to,
    which switched the account off and is lifted when it vouches again. An account that an
    administrator switched off stays off.
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
