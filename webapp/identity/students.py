"""Students who signed in at a provider: no account, only their identity in the session."""

from dataclasses import dataclass

from django.http import HttpRequest

from webapp.identity.claims import Claims
from webapp.identity.models import IdentityProvider
from webapp.identity.services import session_note

_KEY = "student"
PREFIX = "/q/"


@dataclass(frozen=True, slots=True)
class SignedInStudent:
    """Identity of a student, as given by a provider."""

    organisation_id: int
    subject: str
    number: str
    email: str


def is_for_students(address: str) -> bool:
    """Return True if a URL is one of the students' pages."""
    return address.startswith(PREFIX)


def remember(
    request: HttpRequest, *, provider: IdentityProvider, claims: Claims, number: str
) -> None:
    """Store a student's identity in this session, under a new session key."""
    request.session.cycle_key()
    request.session[_KEY] = {
        "provider": provider.key,
        "subject": f"{provider.key}:{claims.subject}"[:255],
        "number": number,
        "email": claims.email,
    }
    request.session.save()
    key = request.session.session_key or ""
    session_note(provider=provider, session_key=key, claims=claims, user=None)


def signed_in_student(request: HttpRequest) -> SignedInStudent | None:
    """Return the student of this session while the student's provider is enabled, else None."""
    kept = request.session.get(_KEY)
    if not isinstance(kept, dict):
        return None
    provider = IdentityProvider.objects.filter(
        key=kept["provider"], is_on=True, takes_students=True
    ).first()
    if provider is None:
        return None
    return SignedInStudent(provider.organisation_id, kept["subject"], kept["number"], kept["email"])


def provider_for_students(organisation_id: int) -> IdentityProvider | None:
    """Return the provider that vouches for the students of an organisation, or None."""
    found = IdentityProvider.objects.filter(
        organisation_id=organisation_id, is_on=True, takes_students=True
    )
    return found.order_by("pk").first()
