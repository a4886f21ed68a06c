"""Claims of a provider about a person: names, values, and the resulting role.

OpenID Connect claims are JSON (a text, a number, a list), SAML attributes lists of text; both are
read here as texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webapp.accounts.models import Role
from webapp.identity.models import IdentityProvider, Protocol

_STUDENT_CLAIMS = ("preferred_username", "eduPersonPrincipalName", "uid")
EMAIL_CLAIMS = ("email", "mail")
# Names of these claims in universities' SAML servers (eduPerson, inetOrgPerson) and in Entra.
_LONG_NAMES = {
    "urn:oid:1.3.6.1.4.1.5923.1.1.1.1": "eduPersonAffiliation",
    "urn:oid:1.3.6.1.4.1.5923.1.1.1.6": "eduPersonPrincipalName",
    "urn:oid:1.3.6.1.4.1.5923.1.1.1.7": "eduPersonEntitlement",
    "urn:oid:1.3.6.1.4.1.5923.1.1.1.9": "eduPersonScopedAffiliation",
    "urn:oid:1.3.6.1.4.1.5923.1.5.1.1": "isMemberOf",
    "urn:oid:0.9.2342.19200300.100.1.1": "uid",
    "urn:oid:0.9.2342.19200300.100.1.3": "mail",
    "urn:oid:2.5.4.42": "givenName",
    "urn:oid:2.5.4.4": "sn",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups": "groups",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/role": "role",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress": "mail",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name": "uid",
}
MAX_VALUES = 2_000  # maximum groups of one person


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of one sign-in; ``subject`` never changes for a person of a provider.

    ``verifies_emails``: treat an address as verified if the provider does not state it.
    """

    subject: str
    values: Mapping[str, Any]
    sid: str = ""
    verifies_emails: bool = False

    def texts(self, name: str) -> list[str]:
        """Return the values of a claim; a dotted name leads into an object, as Keycloak nests."""
        found: Any = self.values.get(name)
        if found is None and "." in name:
            found = self.values
            for part in name.split("."):
                found = found.get(part) if isinstance(found, Mapping) else None
        values = found if isinstance(found, list | tuple) else [found]
        plain = [str(v).strip() for v in values[:MAX_VALUES] if isinstance(v, str | int)]
        return [text for text in plain if text]

    def first(self, *names: str) -> str:
        """Return the first value of the first of these claims with a value, otherwise ""."""
        return next((text for name in names if name for text in self.texts(name)[:1]), "")

    @property
    def email(self) -> str:
        """E-mail address that the provider verified; empty for an unverified address.

        An address is unverified if the provider does not state it, unless its settings say
        that it always verifies: an invitation is found by this address.
        """
        said = self.first("email_verified").lower()
        is_checked = said in ("true", "1") if said else self.verifies_emails
        return self.first("email", "mail").lower() if is_checked else ""


def read_claims(provider: IdentityProvider, uid: str, data: dict[str, Any]) -> Claims | None:
    """Return the claims in allauth's data of an answer; None if its parts name two people.

    With OpenID Connect the ID token and the user information are two answers: by the standard the
    second counts only if it has the subject of the first.
    """
    is_trusted = provider.verifies_emails
    if provider.protocol == Protocol.SAML:
        values = data | {_LONG_NAMES[n]: v for n, v in data.items() if n in _LONG_NAMES}
        return Claims(subject=uid, values=values, verifies_emails=is_trusted)
    token, info = data.get("id_token") or {}, data.get("userinfo") or {}
    if not token.get("sub") or (info and info.get("sub") != token["sub"]):
        return None
    sid = str(token.get("sid", ""))[:255]
    return Claims(subject=uid, values={**token, **info}, sid=sid, verifies_emails=is_trusted)


def role_of(provider: IdentityProvider, claims: Claims) -> Role | None:
    """Return the role that the claims give; None if this person may not sign in."""
    given = set(claims.texts(provider.role_claim))
    for role, listed in (
        (Role.ADMINISTRATOR, provider.administrators),
        (Role.STAFF, provider.staff),
        (Role.VIEWER, provider.viewers),
    ):
        if given & {line.strip() for line in listed.splitlines() if line.strip()}:
            return role
    return Role(provider.others_role) if provider.others_role else None


def student_number(provider: IdentityProvider, claims: Claims) -> str:
    """Return the number that identifies a student: the chosen claim, a usual one, or the subject.

    An e-mail address must be verified by the provider; otherwise people could claim another's.
    """
    chosen = provider.student_claim
    if chosen in EMAIL_CLAIMS:
        return claims.email[:200]
    if chosen:
        return claims.first(chosen)[:200]
    return (claims.first(*_STUDENT_CLAIMS) or claims.email or claims.subject)[:200]
