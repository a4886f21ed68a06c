"""Personal links: signed, one of a kind, revocable; a forged or old one finds nobody."""

from django.core import signing
from django.utils.crypto import constant_time_compare

from webapp.surveys.models import Participant

_SIGNER = {"salt": "webapp.surveys.links", "sep": "~"}


def token_of(participant: Participant) -> str:
    """Return the token of somebody's personal link."""
    return signing.Signer(**_SIGNER).sign(f"{participant.pk}.{participant.nonce}")


def participant_of(token: str) -> Participant | None:
    """Return whose link it is; None for a forged, revoked or withdrawn one."""
    try:
        key, _, nonce = signing.Signer(**_SIGNER).unsign(token).partition(".")
    except signing.BadSignature:
        return None
    found = Participant.objects.select_related("questionnaire__organisation").filter(pk=key).first()
    if found is None or not constant_time_compare(found.nonce, nonce):
        return None
    return found
