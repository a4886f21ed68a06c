"""Sign-outs that a provider tells us of by itself (OpenID Connect Back-Channel Logout 1.0)."""

import time
from typing import Any

import jwt
import requests
from django.core.cache import cache

from webapp.common.limits import is_first
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.outbound import GuardedSession
from webapp.identity.services import IdentityError, sessions_end

EVENT = "http://schemas.openid.net/event/backchannel-logout"
# Signatures with a key pair only: with a shared secret or none anybody could write the token.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
LEEWAY = 60  # seconds that clocks may differ
MAX_AGE = 600
_KEYS_KEPT = 300


def sign_out(*, provider: IdentityProvider, token: str) -> int:
    """End the sessions that a logout token names and return how many; IdentityError for a bad one.

    A token counts once: who has read it in passing cannot send it again.
    """
    claims = _checked(provider, token)
    subject, sid = str(claims.get("sub") or ""), str(claims.get("sid") or "")
    if not subject and not sid:
        raise IdentityError("The token names neither a person nor a session.")
    return sessions_end(provider=provider, subject=subject, sid=sid)


def _checked(provider: IdentityProvider, token: str) -> dict[str, Any]:
    if provider.protocol != Protocol.OPENID_CONNECT:
        raise IdentityError("This provider does not sign out this way.")
    try:
        header = jwt.get_unverified_header(token)
        issuer, keys = _issuer_and_keys(provider)
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key(keys, header.get("kid")),
            algorithms=list(ALGORITHMS),
            audience=provider.client_id,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": ["iss", "aud", "iat", "jti"]},
        )
    except (jwt.PyJWTError, requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise IdentityError("The token is not one of this provider for us.") from error
    events = claims.get("events")
    if not isinstance(events, dict) or EVENT not in events or "nonce" in claims:
        raise IdentityError("The token is no logout token.")
    if not time.time() - MAX_AGE <= float(claims["iat"]) <= time.time() + LEEWAY:
        raise IdentityError("The token is too old.")
    mark = f"logout:{provider.key}:{claims['jti']}"
    if not is_first(mark, seconds=MAX_AGE + 2 * LEEWAY):
        raise IdentityError("The token was used before.")
    return claims


def _issuer_and_keys(provider: IdentityProvider) -> tuple[str, jwt.PyJWKSet]:
    place = f"keys:{provider.key}:{provider.server_url}"
    found = cache.get(place)
    if found is None:
        with GuardedSession() as session:
            address = provider.server_url.rstrip("/") + "/.well-known/openid-configuration"
            configuration = session.get(address).json()
            keys = session.get(configuration["jwks_uri"]).json()
        found = configuration["issuer"], keys
        cache.set(place, found, _KEYS_KEPT)
    return found[0], jwt.PyJWKSet.from_dict(found[1])


def _key(keys: jwt.PyJWKSet, kid: str | None) -> jwt.PyJWK:
    """Return the key that the token names; the only one where it names none."""
    if kid is None and len(keys.keys) == 1:
        return keys.keys[0]
    return keys[str(kid)]
