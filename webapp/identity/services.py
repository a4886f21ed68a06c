"""Admission of people by providers, their roles, and the end of their sessions."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import Role, User
from webapp.accounts.names import check_alphabet
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.identity.claims import Claims, role_of
from webapp.identity.models import (
    IdentityProvider,
    ProviderAccount,
    ProviderSession,
    SecondFactorDuty,
)

MAX_PROVIDERS = 20


class IdentityError(Refusal):
    """Refusal of a sign-in or a change. The message is one sentence."""


def provider_keep(*, by: User, provider: IdentityProvider) -> None:
    """Store a new or changed provider of the administrator's organisation."""
    is_new = provider.pk is None
    if is_new:
        provider.organisation, provider.created_by = by.own_organisation, by
        if (
            IdentityProvider.objects.filter(organisation=by.own_organisation).count()
            >= MAX_PROVIDERS
        ):
            raise IdentityError(
                _("An organisation has at most %(max_providers)s providers.")
                % {"max_providers": MAX_PROVIDERS}
            )
    try:
        with transaction.atomic():
            provider.save()
            audit(by, "added a provider" if is_new else "changed a provider", provider)
    except IntegrityError as error:
        raise IdentityError(
            _("There is already a provider called “%(provider)s”.") % {"provider": provider.name},
            "name",
        ) from error
    if not provider.is_on:
        sessions_end(provider=provider)


def provider_remove(*, by: User, provider: IdentityProvider) -> int:
    """Remove a provider and disable its people, with all sessions; return their number."""
    with transaction.atomic():
        people = list(User.objects.filter(provider_account__provider=provider))
        for person in people:
            _switch(person, active=False)
        sessions_end(provider=provider)
        audit(by, "removed a provider", provider, people=len(people))
        provider.delete()
    return len(people)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A person admitted by a provider, with the role from the claims."""

    user: User
    is_new: bool


@transaction.atomic
def person_admit(
    *, provider: IdentityProvider, claims: Claims, known: User | None
) -> Admitted | None:
    """Return the account for these claims, created or updated; None if they give no role.

    The claims decide at every sign-in: the role follows them, also downwards, and an account whose
    claims give no role is disabled with its sessions and tokens, until they give one again.
    """
    role = role_of(provider, claims)
    if known is None:
        return Admitted(_made(provider, claims, role), is_new=True) if role is not None else None
    account = (
        ProviderAccount.objects.select_for_update().filter(user=known, provider=provider).first()
    )
    if account is None or known.organisation_id != provider.organisation_id:
        return None
    if role is None:
        person_lose(account=account, reason="no group gives a role")
        return None
    if account.is_lost:
        account.is_lost = False
        _switch(known, active=True)
        audit(None, "switched on", known, organisation=provider.organisation, by=provider.name)
    if known.role != role:
        audit(
            None, "changed role", known, organisation=provider.organisation,
            before=known.role, after=role, by=provider.name,
        )  # fmt: skip
        known.role = role
    known.email = claims.email[:254]
    known.save(update_fields=["role", "email"])
    account.checked_at = timezone.now()
    account.save(update_fields=["checked_at", "is_lost"])
    return Admitted(known, is_new=False)


def _made(provider: IdentityProvider, claims: Claims, role: Role) -> User:
    user = User(
        username=_free_name(claims, provider), organisation=provider.organisation, role=role,
        email=claims.email[:254],
        first_name=claims.first("given_name", "givenName")[:150],
        last_name=claims.first("family_name", "sn")[:150],
    )  # fmt: skip
    user.set_unusable_password()
    user.save()
    ProviderAccount.objects.create(user=user, provider=provider, checked_at=timezone.now())
    audit(None, "added user", user, organisation=provider.organisation, role=role, by=provider.name)
    return user


def _free_name(claims: Claims, provider: IdentityProvider) -> str:
    """Return a free sign-in name: that of the claims, with a number if it is taken."""
    wanted = claims.first("preferred_username", "eduPersonPrincipalName", "uid", "email", "mail")
    allowed = "".join(c for c in wanted if c.isalnum() or c in "@.+-_")[:120]
    name = base = User.normalize_username(allowed or f"person-{provider.key}")
    try:
        check_alphabet(name)
    except ValidationError:  # it may look like another person's name
        name = base = f"person-{provider.key}"
    for k in range(2, 10_000):
        if not User.objects.named(name).exists():
            return name
        name = f"{base}-{k}"
    raise IdentityError(_("No name is free for this account."))


def person_lose(*, account: ProviderAccount, reason: str) -> None:
    """Disable the account of a person whom the provider no longer vouches for; end its sessions."""
    person = account.user
    if person.is_active:
        account.is_lost = True
        account.save(update_fields=["is_lost"])
        _switch(person, active=False)
        audit(
            None, "switched off", person, organisation=person.organisation,
            by=account.provider.name, reason=reason,
        )  # fmt: skip
    sessions_end(provider=account.provider, user=person)


def people_expire() -> int:
    """Disable accounts not vouched for within their provider's days of trust; return their number.

    A person who left does not sign in again to be refused: without this their API tokens would work
    for ever. Signing in again enables the account. The sweep calls this repeatedly.
    """
    now, count = timezone.now(), 0
    for provider in IdentityProvider.objects.exclude(trust_days=0):
        oldest = now - timedelta(days=provider.trust_days)
        stale = provider.people.filter(checked_at__lt=oldest, user__is_active=True)
        for account in stale.select_related("user", "provider"):
            with transaction.atomic():
                reason = f"no sign-in for {provider.trust_days} days"
                person_lose(account=account, reason=reason)
            count += 1
    return count


def _switch(person: User, *, active: bool) -> None:
    person.is_active = active
    person.save(update_fields=["is_active"])


def session_note(
    *, provider: IdentityProvider, session_key: str, claims: Claims, user: User | None
) -> None:
    """Record a session that a provider began, so that the provider can end it."""
    ProviderSession.objects.update_or_create(
        session_key=session_key,
        defaults={
            "provider": provider,
            "user": user,
            "subject": claims.subject[:255],
            "sid": claims.sid,
        },
    )


def sessions_end(
    *, provider: IdentityProvider, subject: str = "", sid: str = "", user: User | None = None
) -> int:
    """End the sessions that a provider began: all, or those of a subject, sid or person."""
    found = provider.sessions.all()
    if subject:
        found = found.filter(subject=subject)
    if sid:
        found = found.filter(sid=sid)
    if user is not None:
        found = found.filter(user=user)
    with transaction.atomic():
        keys = list(found.values_list("session_key", flat=True))
        Session.objects.filter(session_key__in=keys).delete()
        found.delete()
    return len(keys)


def second_factor_require(*, by: User, is_duty: bool) -> None:
    """Require a second factor of the organisation's local people, or stop requiring it."""
    organisation = by.own_organisation
    with transaction.atomic():
        if is_duty:
            SecondFactorDuty.objects.get_or_create(organisation=organisation)
        else:
            SecondFactorDuty.objects.filter(organisation=organisation).delete()
        verb = "requires a second factor" if is_duty else "requires no second factor"
        audit(by, verb, organisation)
