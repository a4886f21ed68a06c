"""Building lists: halls, floors and rooms that cohorts are placed into, year after year."""

import re
import uuid
from functools import cache, cached_property

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from engine.tabular.designations import designations_in_words, read_designations
from webapp.common.models import OrganisationOwned
from webapp.translation.counting import counted

MAX_BEDS = 8  # beds in one room; the placement solver takes no more
SuiteKey = tuple[str, str]  # hall, suite without case
_NAMES_OF_SUITES = re.compile(
    r"(suite|apartment|apt|flat|unit|pod|cluster|wohnung|wg)\b", re.IGNORECASE
)
KINDS = {1: "Single", 2: "Double", 3: "Triple", 4: "Quad"}  # as files of preferences write them
_KINDS_IN_WORDS = {1: _("Single"), 2: _("Double"), 3: _("Triple"), 4: _("Quad")}


def kind_in_words(beds: int) -> str:
    """Return the kind of a room with some beds in the language of the page, such as "Double"."""
    return _kind_in_words(beds, get_language())


@cache
def _kind_in_words(beds: int, language: str | None) -> str:
    """Return the kind in the language, which is that of the page: lists name it for each room."""
    return str(_KINDS_IN_WORDS.get(beds) or counted(beds, "bed"))


class ListedBuildings(models.Manager["BuildingList"]):
    """Manager of the building lists that people see: without those of pairs."""

    def get_queryset(self) -> models.QuerySet["BuildingList"]:
        """Return the lists of real rooms."""
        return super().get_queryset().filter(is_private=False)


class BuildingList(OrganisationOwned):
    """Halls, rooms and beds of one campus; several cohorts and years may be placed into it.

    ``is_private`` marks the list of one placement of pairs: it holds a room of two for each pair,
    and no page lists it. ``objects`` leaves such lists out; ``everything`` holds them too.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    filename = models.CharField(max_length=200, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)
    is_private = models.BooleanField(default=False, db_default=False)

    objects = ListedBuildings()
    everything: models.Manager["BuildingList"] = models.Manager()

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="building_list_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class RoomState(models.TextChoices):
    """State of a room: open to placement or not."""

    OPEN = "open", _("Open")
    KEPT = "kept", _("Held back")
    OFFLINE = "offline", _("Offline")


class Room(models.Model):
    """One room. ``designation`` names who may live there, ``meets`` the needs that it meets.

    A designation is a value of the column that a placement's rules choose, or names its columns:
    "Gender=F; Class year=1|2" (:mod:`engine.tabular.designations`); blank means anybody.
    ``capacity`` is the normal number of beds; ``extra_beds`` are used last. ``also_meets`` are
    needs in other words that it meets, as staff said
    (:mod:`webapp.housing.services.need_meanings`). ``position`` keeps the order of the file.
    Rooms of one hall with the same ``suite``, without case, form a suite; blank is no suite.
    """

    buildings = models.ForeignKey(BuildingList, on_delete=models.CASCADE, related_name="rooms")
    hall = models.CharField(max_length=80)
    floor = models.CharField(max_length=20, blank=True)
    name = models.CharField(max_length=40)
    suite = models.CharField(max_length=40, blank=True, default="", db_default="")
    capacity = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MAX_BEDS)]
    )
    extra_beds = models.PositiveSmallIntegerField(default=0, db_default=0)
    designation = models.CharField(max_length=200, blank=True)
    meets = models.JSONField(default=list)
    also_meets = models.JSONField(default=list)
    state = models.CharField(max_length=8, choices=RoomState.choices, default=RoomState.OPEN)
    note = models.CharField(max_length=120, blank=True)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["buildings", "hall", "name"], name="room_name_once"),
            models.CheckConstraint(
                condition=models.Q(capacity__gte=1, capacity__lte=MAX_BEDS), name="room_has_beds"
            ),
            models.CheckConstraint(
                condition=models.Q(extra_beds__lte=MAX_BEDS - models.F("capacity")),
                name="room_has_few_extra_beds",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """Hall and room name, such as Alder 312."""
        return f"{self.hall} {self.name}"

    @property
    def suite_key(self) -> SuiteKey | None:
        """Hall and suite without case, which the rooms of a suite share; None without a suite."""
        return (self.hall, self.suite.casefold()) if self.suite else None

    @property
    def suite_in_words(self) -> str:
        """The suite in words, such as "Suite 201" or "Apartment 4"; "" without a suite."""
        if not self.suite or _NAMES_OF_SUITES.match(self.suite):
            return self.suite
        return gettext("Suite %(suite)s") % {"suite": self.suite}

    @property
    def place_in_words(self) -> str:
        """Suite and room without the hall, such as "Suite 201, room 201A", or "312"."""
        if not self.suite:
            return self.name
        words = {"suite": self.suite_in_words, "room": self.name}
        return gettext("%(suite)s, room %(room)s") % words

    @property
    def kind(self) -> str:
        """Kind of room: single, double, triple, quad or the number of beds."""
        return KINDS.get(self.capacity, f"{self.capacity} beds")

    @property
    def max_capacity(self) -> int:
        """Number of beds with the extra beds."""
        return self.capacity + self.extra_beds

    @property
    def beds_in_words(self) -> str:
        """Number of beds, such as "2" or "2 (up to 3)"."""
        if not self.extra_beds:
            return str(self.capacity)
        beds = {"beds": self.capacity, "most": self.max_capacity}
        return gettext("%(beds)s (up to %(most)s)") % beds

    @property
    def kind_in_words(self) -> str:
        """Kind of room, such as "Double" or "Double (up to 3)"."""
        kind = kind_in_words(self.capacity)
        if not self.extra_beds:
            return kind
        words = gettext("%(kind)s (up to %(most)s)")
        return words % {"kind": kind, "most": self.max_capacity}

    @cached_property
    def admits(self) -> dict[str, tuple[str, ...]]:
        """Values of students whom the designations admit, without case, by column without case."""
        return read_designations(self.designation)

    @property
    def designation_in_words(self) -> str:
        """Designations, such as "Gender: F; Class year: 1 or 2"; blank for anybody."""
        return designations_in_words(self.designation)

    @property
    def met_needs(self) -> set[str]:
        """Return the needs that the room meets, without case, also those in other words."""
        return {need.casefold() for need in (*self.meets, *self.also_meets)}

    @property
    def is_open(self) -> bool:
        """Return True if a placement may use the room."""
        return self.state == RoomState.OPEN


class BuildingDraft(OrganisationOwned):
    """An uploaded list of rooms that is being checked and is not a building list yet.

    ``header``, ``rows`` and ``row_numbers`` are the file as it was read; ``roles`` says for every
    column what it holds (:class:`engine.tabular.rooms.Column`).
    """

    KEPT_DAYS = 14

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    filename = models.CharField(max_length=200)
    read_as = models.CharField(max_length=60)
    header = models.JSONField()
    rows = models.JSONField()
    row_numbers = models.JSONField()
    roles = models.JSONField()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.filename
