"""Second factors: one-time codes of an authenticator, and recovery codes (django-allauth's)."""

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    generate_totp_secret,
    hotp_value,
    validate_totp_code,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.accounts.services import check_may_take_over
from webapp.audit.services import audit
from webapp.common.limits import is_first
from webapp.identity.models import SecondFactorDuty
from webapp.identity.services import IdentityError

PERIOD = 30  # seconds for which a code is shown
WAIT = 300  # seconds between the password and the code

__all__ = ["generate_totp_secret"]


def has_second_factor(user: User) -> bool:
    """Return True if the user's sign-in asks for a code."""
    return Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def needs_second_factor(user: User) -> bool:
    """Return True if a local person must set up a second factor first."""
    if not user.organisation_id or not user.has_usable_password():
        return False
    duty = SecondFactorDuty.objects.filter(organisation_id=user.organisation_id)
    return duty.exists() and not has_second_factor(user)


@transaction.atomic
def second_factor_begin(*, user: User, secret: str, code: str) -> list[str]:
    """Enable a second factor if the first code is right; return the recovery codes, shown once."""
    if has_second_factor(user):
        raise IdentityError(_("You have a second factor already."))
    code = "".join(c for c in code if c in "0123456789")[:20]
    if not validate_totp_code(secret, code):
        raise IdentityError(_("This code is not right. Look at the newest one."))
    TOTP.activate(user, secret)
    _mark_used(user, secret, code)
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes = RecoveryCodes.activate(user).get_unused_codes()
    audit(user, "turned on a second factor", user)
    return codes


@transaction.atomic
def recovery_codes_renew(*, user: User) -> list[str]:
    """Return new recovery codes; the old ones are no longer valid."""
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes = RecoveryCodes.activate(user).get_unused_codes()
    audit(user, "made new recovery codes", user)
    return codes


def recovery_codes_left(user: User) -> int:
    """Return the number of unused recovery codes."""
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return len(RecoveryCodes(found).get_unused_codes()) if found else 0


@transaction.atomic
def second_factor_remove(*, by: User, user: User) -> None:
    """Disable a second factor: by its owner, or by an administrator if phone and codes are lost."""
    if by != user and (not by.is_administrator or by.organisation_id != user.organisation_id):
        raise IdentityError(_("Only an administrator of the organisation can do this."))
    if by != user:
        check_may_take_over(by, user)
    Authenticator.objects.filter(user=user).delete()
    audit(by, "turned off a second factor", user)


def code_is_right(*, user: User, code: str) -> bool:
    """Return True for a current code that is unused, or an unused recovery code."""
    code = "".join(c for c in code if c in "0123456789")[:20]
    found = {row.type: row for row in Authenticator.objects.filter(user=user)}
    totp = found.get(Authenticator.Type.TOTP)
    if not code or totp is None:
        return False
    secret = decrypt(totp.data["secret"])
    if validate_totp_code(secret, code):
        return _mark_used(user, secret, code)
    recovery = found.get(Authenticator.Type.RECOVERY_CODES)
    if recovery is None or not RecoveryCodes(recovery).validate_code(code):
        return False
    audit(user, "used a recovery code", user)
    return True


def _mark_used(user: User, secret: str, code: str) -> bool:
    """Mark a code as used in the cache shared by all web processes; each opens one session."""
    counters = [k for k in yield_hotp_counters_from_time() if int(code) == hotp_value(secret, k)]
    mark = f"second-factor:{user.pk}:{counters[0] if counters else int(time.time()) // PERIOD}"
    return is_first(mark, seconds=4 * PERIOD)
