"""Organisations and the people in them."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models


class Organisation(models.Model):
    """A university or lab; the wall behind which all its objects stand."""

    name = models.CharField(max_length=120, unique=True)
    department = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Where it is: pages show its times, and questionnaires close by its midnight. Empty: the
    # installation's zone.
    time_zone = models.CharField(max_length=64, blank=True)
    # What its files take: as counted then, and what was taken since. See webapp/files/quota.py.
    stored_bytes = models.BigIntegerField(default=0, editable=False)
    stored_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of its pages."""
        try:
            return ZoneInfo(self.time_zone or settings.TIME_ZONE)
        except (ZoneInfoNotFoundError, ValueError):  # zones of another version of the table
            return ZoneInfo(settings.TIME_ZONE)


class Role(models.TextChoices):
    """What a person may do; each role includes the ones before it."""

    VIEWER = "viewer", "Viewer"
    STAFF = "staff", "Staff"
    ADMINISTRATOR = "administrator", "Administrator"


_RANK = {Role.VIEWER: 0, Role.STAFF: 1, Role.ADMINISTRATOR: 2}


class Theme(models.TextChoices):
    """The colours of the pages."""

    AUTO = "auto", "As the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class User(AbstractUser):
    """A person of one organisation."""

    organisation = models.ForeignKey(
        Organisation, null=True, on_delete=models.PROTECT, related_name="members"
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.AUTO)
    keyboard_shortcuts = models.BooleanField(default=True)
    must_change_password = models.BooleanField(default=False)

    class Meta:
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(organisation__isnull=False) | models.Q(is_superuser=True),
                name="user_belongs_to_an_organisation",
            )
        ]

    def has_role(self, role: str) -> bool:
        """Whether the person holds this role or a higher one in an organisation."""
        return self.organisation_id is not None and _RANK[Role(self.role)] >= _RANK[Role(role)]

    @property
    def is_staff_member(self) -> bool:
        """Whether the person may change things (staff or administrator)."""
        return self.has_role(Role.STAFF)

    @property
    def is_administrator(self) -> bool:
        """Whether the person may manage the people of the organisation."""
        return self.has_role(Role.ADMINISTRATOR)
