"""Personal links: signed, unique, expiring and revocable. A forged or old link is not accepted."""

from datetime import timedelta

from django.core import signing
from django.utils.crypto import constant_time_compare

from webapp.surveys.models import Participant

VALID_FOR = timedelta(days=200)  # a questionnaire open for longer sends new links with a reminder


def token_of(participant: Participant) -> str:
    """Return the token of a participant's personal link."""
    return _signer().sign(f"{participant.pk}.{participant.nonce}")


def participant_of(token: str) -> Participant | None:
    """Return the owner of a link; None if it is forged, expired, revoked or withdrawn."""
    try:
        text = _signer().unsign(token, max_age=VALID_FOR)
    except signing.BadSignature:
        return None
    key, _, nonce = text.partition(".")
    found = Participant.objects.select_related("questionnaire__organisation").filter(pk=key).first()
    if found is None or not constant_time_compare(found.nonce, nonce):
        return None
    return found


def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="webapp.surveys.links", sep="~")
