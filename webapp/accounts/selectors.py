"""Queries on people and organisations."""

import re

from webapp.accounts.models import Organisation, User

_CODE = re.compile(r"[a-z0-9]{8,16}")


def organisation_of_code(code: str) -> Organisation | None:
    """Return the organisation of a sign-in code or of a whole sign-in link, or None."""
    last = code.strip().partition("?")[0].rstrip("/").rpartition("/")[2].lower()
    if not _CODE.fullmatch(last):
        return None
    return Organisation.objects.filter(sign_in_code=last).first()


def only_organisation() -> Organisation | None:
    """Return the only organisation whose people can sign in; None if there are several."""
    found = Organisation.objects.filter(members__is_active=True).distinct()[:2]
    return found[0] if len(found) == 1 else None


def working_tokens(user: User) -> int:
    """Return the number of a person's valid tokens, which a new password does not end."""
    return sum(token.is_usable for token in user.api_tokens.select_related("user"))
