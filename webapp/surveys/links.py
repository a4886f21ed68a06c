"""Personal links: signed, one of a kind, expiring, revocable; a forged or old one finds nobody."""

from datetime import timedelta

from django.core import signing
from django.utils.crypto import constant_time_compare

from webapp.surveys.models import Participant

VALID_FOR = timedelta(days=200)  # a questionnaire that is open longer sends new links by a reminder
_SIGNER = {"salt": "webapp.surveys.links", "sep": "~"}


def token_of(participant: Participant) -> str:
    """Return the token of somebody's personal link."""
    return signing.TimestampSigner(**_SIGNER).sign(f"{participant.pk}.{participant.nonce}")


def participant_of(token: str) -> Participant | None:
    """Return whose link it is; None for a forged, expired, revoked or withdrawn one."""
    try:
        text = signing.TimestampSigner(**_SIGNER).unsign(token, max_age=VALID_FOR)
    except signing.BadSignature:
        return None
    key, _, nonce = text.partition(".")
    found = Participant.objects.select_related("questionnaire__organisation").filter(pk=key).first()
    if found is None or not constant_time_compare(found.nonce, nonce):
        return None
    return found
