"""Changes to people and organisations.

An administrator (``by``) changes only the administrator's own organisation.
"""

import secrets
from zoneinfo import available_timezones

from axes.utils import reset as axes_reset
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import NamesFor, Organisation, Role, User
from webapp.accounts.names import sign_in_key
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.identity.models import ProviderAccount
from webapp.translation.lazy import gettext_lazy

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # no characters that look alike
_LAST_ADMINISTRATOR = gettext_lazy(
    "An organisation needs an administrator: give somebody else that role first."
)


class AccountError(Refusal):
    """Refusal of a change; the message is a sentence for the user."""


def temporary_password() -> str:
    """Return a random password that can be read aloud; about 79 bits."""
    groups = ("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(4))
    return "-".join(groups)


def organisation_create(
    *, name: str, department: str = "", administrator: str, is_operator: bool = False
) -> tuple[Organisation, str]:
    """Create an organisation with its first administrator; return it with a temporary password.

    ``is_operator`` makes the administrator an operator of the installation too.

    The command line calls this, so the audit line names the system.
    """
    organisation = Organisation()
    with transaction.atomic():
        _name(organisation, name, department)
        user, password = _add_person(organisation, administrator, Role.ADMINISTRATOR)
        audit(None, "made", organisation, organisation=organisation, administrator=user.username)
        if is_operator:
            operator_set(user=user, is_operator=True)
    return organisation, password


@transaction.atomic
def operator_set(*, user: User, is_operator: bool) -> None:
    """Make an account an operator of the installation, or end that.

    The command line calls this. A provider's account cannot be an operator: the administrators of
    its organisation could point the provider at a server of their own.
    """
    if is_operator and user.organisation is None:
        raise AccountError(
            _("%(username)s belongs to no organisation, so no page opens for it.")
            % {"username": user.username}
        )
    if is_operator:
        _check_is_local(user)
    if user.is_operator != is_operator:
        user.is_operator = is_operator
        user.save(update_fields=["is_operator"])
        verb = "made operator" if is_operator else "made no operator"
        audit(None, verb, user, organisation=user.organisation)


@transaction.atomic
def organisation_rename(
    *, by: User, name: str, department: str, time_zone: str | None = None
) -> None:
    """Change the name, department and time zone of the administrator's organisation."""
    organisation = Organisation.objects.get(pk=_organisation_of(by).pk)
    before = str(organisation)
    if time_zone is not None:
        if time_zone and time_zone not in available_timezones():
            raise AccountError(
                _("Choose a time zone of the list, such as Europe/Madrid."), "time_zone"
            )
        organisation.time_zone = time_zone
    _name(organisation, name, department)
    audit(by, "renamed", organisation, before=before, department=organisation.department)


@transaction.atomic
def organisation_set_names(*, by: User, names_for: str) -> None:
    """Choose who sees the names of students in the administrator's organisation."""
    organisation = Organisation.objects.get(pk=_organisation_of(by).pk)
    if names_for not in NamesFor.values:
        raise AccountError(_("Choose staff and administrators, administrators only, or nobody."))
    before, organisation.names_for = organisation.names_for, names_for
    organisation.save(update_fields=["names_for"])
    audit(by, "changed who sees names", organisation, before=before, after=names_for)


@transaction.atomic
def user_create(*, by: User, username: str, role: str) -> tuple[User, str]:
    """Create a person of the administrator's organisation; return it with a temporary password.

    The password is shown once and must be changed at the first sign-in.
    """
    user, password = _add_person(_organisation_of(by), username, role)
    audit(by, "added user", user, role=role)
    return user, password


@transaction.atomic
def user_set_role(*, by: User, user: User, role: str) -> None:
    """Change a person's role; the last active administrator keeps that role."""
    _check_same_organisation(by, user)
    before = user.role
    if before == role:
        return
    _check_is_local(user)
    if before == Role.ADMINISTRATOR:
        _check_not_last_administrator(user)
    user.role = Role(role)
    user.save(update_fields=["role"])
    audit(by, "changed role", user, before=before, after=role)


@transaction.atomic
def user_set_active(*, by: User, user: User, active: bool) -> None:
    """Enable or disable an account; a disabled account's sessions end at their next request."""
    _check_same_organisation(by, user)
    if user.is_active == active:
        return
    if not active and user.role == Role.ADMINISTRATOR:
        _check_not_last_administrator(user)
    user.is_active = active
    user.save(update_fields=["is_active"])
    audit(by, "switched on" if active else "switched off", user)


@transaction.atomic
def user_reset_password(*, by: User, user: User) -> str:
    """Set and return a new temporary password; the old one and open sessions stop working.

    A lock after failed sign-ins is lifted, since a person who needs a new password is often locked.
    """
    _check_same_organisation(by, user)
    _check_is_local(user)
    check_may_take_over(by, user)
    password = temporary_password()
    user.set_password(password)
    user.must_change_password = True
    user.save(update_fields=["password", "must_change_password"])
    axes_reset(username=sign_in_key(user.get_username()))
    audit(by, "reset password", user)
    return password


def user_changed_password(*, user: User) -> None:
    """Record that a person chose a password, so that the temporary one need not be changed."""
    User.objects.filter(pk=user.pk).update(must_change_password=False)
    if user.organisation_id:
        audit(user, "changed password", user)


def _name(organisation: Organisation, name: str, department: str) -> None:
    organisation.name = " ".join(name.split())[:120]
    organisation.department = " ".join(department.split())[:120]
    if not organisation.name:
        raise AccountError(_("The organisation needs a name."))
    try:
        with transaction.atomic():
            if organisation.pk is None:
                organisation.save()
            else:  # other requests may have changed stored_bytes since the row was read
                organisation.save(update_fields=["name", "department", "time_zone"])
    except IntegrityError as error:
        raise AccountError(
            _("The name %(organisation)s is taken. Choose another one.")
            % {"organisation": organisation.name}
        ) from error


def _add_person(organisation: Organisation, username: str, role: str) -> tuple[User, str]:
    password = temporary_password()
    user = User(
        username=username, organisation=organisation, role=Role(role), must_change_password=True
    )
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:  # taken since the form was checked
        raise AccountError(
            _("The name %(username)s is taken. Choose another one.") % {"username": username}
        ) from error
    return user, password


def _organisation_of(by: User) -> Organisation:
    if by.organisation is None or not by.is_administrator:
        raise PermissionDenied(_("This needs the role administrator."))
    return by.organisation


def _check_same_organisation(by: User, user: User) -> None:
    if _organisation_of(by).pk != user.organisation_id:
        raise PermissionDenied(_("This person belongs to another organisation."))


def check_may_take_over(by: User, user: User) -> None:
    """Refuse a change that lets an administrator sign in as an operator of the organisation."""
    if user.is_operator and not by.is_operator:
        raise AccountError(
            _(
                "%(username)s is an operator of the installation. Only an operator gives "
                "this account a new password or turns its second factor off."
            )
            % {"username": user.username}
        )


def _check_is_local(user: User) -> None:
    account = ProviderAccount.objects.select_related("provider").filter(user=user).first()
    if account is not None:
        raise AccountError(
            _(
                "%(username)s signs in by %(provider)s, which says the role and asks for the "
                "password."
            )
            % {"username": user.username, "provider": account.provider}
        )


def _check_not_last_administrator(user: User) -> None:
    others = (
        User.objects.select_for_update()
        .filter(organisation=user.organisation, role=Role.ADMINISTRATOR, is_active=True)
        .exclude(pk=user.pk)
    )
    if not others.exists():
        raise AccountError(_LAST_ADMINISTRATOR)
