"""Organisations and the people in them."""

import secrets
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.names import check_alphabet, sign_in_key

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # no characters that look alike


def new_sign_in_code() -> str:
    """Return a random code for the sign-in link of an organisation, which cannot be guessed."""
    return "".join(secrets.choice(_LETTERS) for _ in range(12))


class NamesFor(models.TextChoices):
    """People who see the names, numbers and e-mails of students."""

    STAFF = "staff", gettext_lazy("Staff and administrators")
    ADMINISTRATORS = "administrators", gettext_lazy("Administrators only")
    NOBODY = "nobody", gettext_lazy("Nobody: students appear as S-1042")


class Organisation(models.Model):
    """A university or lab, which owns its objects; no other organisation sees them."""

    name = models.CharField(max_length=120, unique=True)
    department = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Time zone of its pages and of the midnight at which questionnaires close. If empty, the
    # installation's.
    time_zone = models.CharField(max_length=64, blank=True)
    # Part of the sign-in link, whose page offers only this organisation's providers.
    sign_in_code = models.CharField(
        max_length=16, unique=True, default=new_sign_in_code, editable=False
    )
    # Staff who see students by name; viewers never do.
    names_for = models.CharField(max_length=16, choices=NamesFor.choices, default=NamesFor.STAFF)
    # Last number on screen that a student got: S-1042 is one student of the organisation.
    last_student_number = models.PositiveIntegerField(default=1000, editable=False)
    # Bytes of its files: the last count plus later additions. See webapp/files/quota.py.
    stored_bytes = models.BigIntegerField(default=0, editable=False)
    stored_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        """Time zone of the organisation's pages."""
        try:
            return ZoneInfo(self.time_zone or settings.TIME_ZONE)
        except (ZoneInfoNotFoundError, ValueError):  # a zone that this version of the table lacks
            return ZoneInfo(settings.TIME_ZONE)


class Role(models.TextChoices):
    """Rights of a person; each role includes the roles before it."""

    VIEWER = "viewer", gettext_lazy("Viewer")
    STAFF = "staff", gettext_lazy("Staff")
    ADMINISTRATOR = "administrator", gettext_lazy("Administrator")


_RANK = {Role.VIEWER: 0, Role.STAFF: 1, Role.ADMINISTRATOR: 2}


class Theme(models.TextChoices):
    """Colour scheme of the pages."""

    AUTO = "auto", gettext_lazy("As the system")
    LIGHT = "light", gettext_lazy("Light")
    DARK = "dark", gettext_lazy("Dark")


class PeopleQuerySet(models.QuerySet["User"]):
    """Query set of people that looks up sign-in names."""

    def named(self, name: str) -> Self:
        """Return the person of a name: by exact spelling first, otherwise regardless of case.

        Older names may differ only in case; each is found by its own spelling.
        """
        exact = self.filter(username=name)
        return exact if exact.exists() else self.filter(name_key=sign_in_key(name))


class PeopleManager(UserManager.from_queryset(PeopleQuerySet)):  # type: ignore[misc]
    """Manager that looks people up by sign-in name, for every method of signing in."""

    def get_by_natural_key(self, username: str | None) -> "User":
        """Return the person of a sign-in name; raise DoesNotExist if there is no such person."""
        return self.get_queryset().named(self.model.normalize_username(username or "")).get()

    def create_superuser(self, username: str, *args: Any, **fields: Any) -> "User":
        """Create a superuser whose name follows the rules of all names."""
        check_alphabet(username)
        return super().create_superuser(username, *args, **fields)


class NameKeyField(models.CharField):
    """Common key of all spellings of one sign-in name; None stays None (`PeopleQuerySet.named`)."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Set the key from the sign-in name."""
        if add or getattr(model_instance, self.attname) is not None:
            key = sign_in_key(model_instance.username)  # type: ignore[attr-defined]
            setattr(model_instance, self.attname, key)
        return super().pre_save(model_instance, add)


class User(AbstractUser):
    """A person of one organisation."""

    username = models.CharField(
        "username",
        max_length=150,
        unique=True,
        validators=[UnicodeUsernameValidator(), check_alphabet],
        error_messages={"unique": gettext_lazy("This name is taken. Choose another one.")},
    )
    name_key = NameKeyField(max_length=450, unique=True, null=True, editable=False)
    organisation = models.ForeignKey(
        Organisation, null=True, on_delete=models.PROTECT, related_name="members"
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.AUTO)
    keyboard_shortcuts = models.BooleanField(default=True)
    must_change_password = models.BooleanField(default=False)
    # True for people who look after hosts, workers, disk and backups. Only manage.py sets it.
    is_operator = models.BooleanField(default=False)

    hides_names = False  # of this request: the session hides the names of students

    objects: ClassVar[PeopleManager] = PeopleManager()

    class Meta:
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(organisation__isnull=False) | models.Q(is_superuser=True),
                name="user_belongs_to_an_organisation",
            )
        ]

    @property
    def own_organisation(self) -> Organisation:
        """Organisation of a person who has one, as everybody with a role has."""
        if self.organisation is None:
            raise PermissionDenied(_("This person belongs to no organisation."))
        return self.organisation

    def has_role(self, role: str) -> bool:
        """Return True if the person has this role or a higher one in an organisation."""
        return self.organisation_id is not None and _RANK[Role(self.role)] >= _RANK[Role(role)]

    @property
    def is_staff_member(self) -> bool:
        """Return True if the person may change things (staff or administrator)."""
        return self.has_role(Role.STAFF)

    @property
    def is_administrator(self) -> bool:
        """Return True if the person may manage the people of the organisation."""
        return self.has_role(Role.ADMINISTRATOR)
