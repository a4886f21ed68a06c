"""Sign-outs that a provider reports by itself (OpenID Connect Back-Channel Logout 1.0)."""

import time
from typing import Any

from webapp.common.limits import is_first
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.provider_keys import LEEWAY, verified_claims
from webapp.identity.services import IdentityError, sessions_end

EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_AGE = 600


def sign_out(*, provider: IdentityProvider, token: str) -> int:
    """End the sessions that a logout token names; return their number, or raise IdentityError.

    A token counts once, so that an intercepted copy cannot be sent again.
    """
    claims = _checked(provider, token)
    subject, sid = str(claims.get("sub") or ""), str(claims.get("sid") or "")
    if not subject and not sid:
        raise IdentityError("The token names neither a person nor a session.")
    return sessions_end(provider=provider, subject=subject, sid=sid)


def _checked(provider: IdentityProvider, token: str) -> dict[str, Any]:
    if provider.protocol != Protocol.OPENID_CONNECT:
        raise IdentityError("This provider does not sign out this way.")
    claims = verified_claims(provider, token, require=("jti",))
    events = claims.get("events")
    if not isinstance(events, dict) or EVENT not in events or "nonce" in claims:
        raise IdentityError("The token is no logout token.")
    if not time.time() - MAX_AGE <= float(claims["iat"]) <= time.time() + LEEWAY:
        raise IdentityError("The token is too old.")
    mark = f"logout:{provider.key}:{claims['jti']}"
    if not is_first(mark, seconds=MAX_AGE + 2 * LEEWAY):
        raise IdentityError("The token was used before.")
    return claims
