"""Verification of a provider's tokens by its own keys (OpenID Connect Core 1.0, 3.1.3.7)."""

from typing import Any

import jwt
import requests
from django.core.cache import cache

from webapp.identity.models import IdentityProvider
from webapp.identity.outbound import GuardedSession
from webapp.identity.services import IdentityError

# Key pairs only: with a shared secret or no signature anybody could write the token.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
LEEWAY = 60  # seconds that clocks may differ
_KEYS_KEPT = 300  # seconds
_ASK_AGAIN = 10  # seconds between two fetches for an unknown key, since a forger may name many
_BAD = (jwt.PyJWTError, requests.RequestException, ValueError, KeyError, TypeError, AttributeError)


def verified_claims(
    provider: IdentityProvider, token: str, *, require: tuple[str, ...]
) -> dict[str, Any]:
    """Return the claims of a token that the provider signed for this client.

    Parameters
    ----------
    require : names of claims that the token must have, besides issuer and audience.

    Raises
    ------
    IdentityError
        If the token is from or for somebody else, too old, unsigned or signed with a secret, or if
            the provider's keys cannot be read.
    """
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        issuer, keys = _issuer_and_keys(provider, kid)
        return _decoded(token, _candidates(keys, kid), provider, issuer, require)
    except _BAD as error:
        raise IdentityError("The token is not one of this provider for us.") from error


def _decoded(
    token: str,
    keys: list[jwt.PyJWK],
    provider: IdentityProvider,
    issuer: str,
    require: tuple[str, ...],
) -> dict[str, Any]:
    """Decode a token with the first key that fits; otherwise raise the last error."""
    problem: jwt.PyJWTError = jwt.InvalidKeyError("The provider has no such key.")
    for key in keys:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key=key,
                algorithms=list(ALGORITHMS),
                audience=provider.client_id,
                issuer=issuer,
                leeway=LEEWAY,
                options={"require": ["iss", "aud", "iat", *require]},
            )
        except jwt.PyJWTError as error:
            problem = error
            continue
        _check_party(claims, provider)
        return claims
    raise problem


def _check_party(claims: dict[str, Any], provider: IdentityProvider) -> None:
    """Refuse a token that was issued to another program with the same audience."""
    party, audience = claims.get("azp"), claims["aud"]
    is_shared = isinstance(audience, list) and len(audience) > 1
    if (party is not None or is_shared) and party != provider.client_id:
        raise jwt.InvalidAudienceError("The token was issued to another program.")


def _issuer_and_keys(provider: IdentityProvider, kid: str | None) -> tuple[str, jwt.PyJWKSet]:
    """Return issuer and keys; fetch them again if a token names an unknown key."""
    place = f"keys:{provider.key}:{provider.server_url}"
    found = cache.get(place)
    if found is not None and kid is not None:
        known = {key.get("kid") for key in found[1]["keys"]}
        if kid not in known and cache.add(f"{place}:again", 1, _ASK_AGAIN):
            found = None
    if found is None:
        found = _asked(provider)
        cache.set(place, found, _KEYS_KEPT)
    return found[0], jwt.PyJWKSet.from_dict(found[1])


def _asked(provider: IdentityProvider) -> tuple[str, dict[str, Any]]:
    with GuardedSession() as session:
        address = provider.server_url.rstrip("/") + "/.well-known/openid-configuration"
        configuration = session.get(address).json()
        keys = session.get(configuration["jwks_uri"]).json()
    return configuration["issuer"], {"keys": [dict(key) for key in keys["keys"]]}


def _candidates(keys: jwt.PyJWKSet, kid: str | None) -> list[jwt.PyJWK]:
    """Return the candidate keys for a signature: the key that the token names, or all."""
    usable = [key for key in keys.keys if key.public_key_use in (None, "sig")]
    return [key for key in usable if kid is None or key.key_id == kid]
