"""The waiting list of a placement: its order, and offers of beds to the students on it."""

from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.housing.models.placement import Placement

DEFAULT_HOURS = 48
MAX_HOURS = 30 * 24
MAX_COLUMN = 200
MAX_VALUES = 400
MAX_SEED = 40
MAX_WHY = 200


class OrderRule(models.TextChoices):
    """Rule that orders the students whom nobody moved by hand."""

    ADDED = "added", _("Date added")
    NEEDS = "needs", _("Students with needs first")
    COLUMN = "column", _("A column of the survey")
    LOTTERY = "lottery", _("Lottery")


class WaitingList(models.Model):
    """Order of a placement's waiting list, and how its beds are offered.

    A placement without a row has the defaults. ``values`` lists the values of ``column`` that come
    first, separated by commas. ``seed`` decides the lottery; students and staff see it. ``hours``
    is the time to answer an offer. With ``is_automatic`` a bed that was declined, or not answered
    in time, is offered to the next student; ``skips_unreachable`` leaves students out who have no
    e-mail.
    """

    placement = models.OneToOneField(
        Placement, on_delete=models.CASCADE, related_name="waiting_list"
    )
    rule = models.CharField(max_length=8, choices=OrderRule.choices, default=OrderRule.ADDED)
    column = models.CharField(max_length=MAX_COLUMN, blank=True)
    values = models.CharField(max_length=MAX_VALUES, blank=True)
    seed = models.CharField(max_length=MAX_SEED, blank=True)
    hours = models.PositiveSmallIntegerField(
        default=DEFAULT_HOURS, validators=[MinValueValidator(1), MaxValueValidator(MAX_HOURS)]
    )
    is_automatic = models.BooleanField(default=True)
    skips_unreachable = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"Waiting list of {self.placement}"

    @property
    def first_values(self) -> list[str]:
        """The values of the column that come first, in order."""
        return [value for part in self.values.split(",") if (value := part.strip())]


class OfferState(models.TextChoices):
    """State of an offer. Only an open offer holds its bed."""

    OPEN = "open", _("Waiting for an answer")
    ACCEPTED = "accepted", _("Accepted")
    DECLINED = "declined", _("Declined")
    EXPIRED = "expired", _("Not answered in time")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class OfferQuerySet(models.QuerySet["WaitingOffer"]):
    """Query set of offers."""

    def holding(self) -> Self:
        """Return the offers that hold a bed: those that wait for an answer."""
        return self.filter(state=OfferState.OPEN)


class WaitingOffer(models.Model):
    """Offer of a bed in one room to a student on the waiting list, with a deadline.

    A student has at most one open offer in a placement. ``event`` is the act that gave the bed.
    ``offered_by`` is None for an offer that followed another by itself, ``answered_by`` None for an
    answer by the student. ``why`` says why an offer was withdrawn. ``was_followed`` is True once
    the next offer of the bed was made, or nobody was found; ``following`` says which.
    """

    placement = models.ForeignKey(
        Placement, on_delete=models.CASCADE, related_name="waiting_offers"
    )
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="waiting_offers"
    )
    room = models.ForeignKey(
        "housing.Room", null=True, on_delete=models.SET_NULL, related_name="waiting_offers"
    )
    room_label = models.CharField(max_length=130)
    state = models.CharField(max_length=10, choices=OfferState.choices, default=OfferState.OPEN)
    hours = models.PositiveSmallIntegerField(default=DEFAULT_HOURS)
    offered_at = models.DateTimeField(default=timezone.now)
    deadline = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    offered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    event = models.ForeignKey(
        "housing.PlacementEvent", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    why = models.CharField(max_length=MAX_WHY, blank=True)
    was_followed = models.BooleanField(default=False)
    following = models.CharField(max_length=MAX_WHY, blank=True)

    objects = OfferQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["placement", "student"],
                condition=models.Q(state="open"),
                name="one_open_offer_a_student",
            )
        ]
        indexes = [
            models.Index(fields=["placement", "state"], name="offers_of_a_placement"),
            models.Index(fields=["state", "deadline"], name="offers_by_deadline"),
        ]

    def __str__(self) -> str:
        return f"offer {self.pk}"

    @property
    def is_open(self) -> bool:
        """Return True if nobody has answered or withdrawn the offer."""
        return self.state == OfferState.OPEN

    @property
    def is_late(self) -> bool:
        """Return True if the deadline has passed."""
        return self.deadline <= timezone.now()
