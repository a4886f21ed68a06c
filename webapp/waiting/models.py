"""Wishes of students who have a bed and wait for another one."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from webapp.housing.models import Room
from webapp.housing.models.building import kind_in_words

MAX_HALL = 80


class MoveWishQuerySet(models.QuerySet["MoveWish"]):
    """Query set of wishes for another bed."""

    def waiting(self) -> Self:
        """Return the wishes that no move fulfilled; an undone move fulfils none."""
        return self.filter(Q(event=None) | Q(event__undone_at__isnull=False))


class MoveWish(models.Model):
    """The wish of a student with a bed for another one; the bed stays until another is accepted.

    ``hall`` and ``beds`` (normal beds of the room) limit what is offered; "" and 0 mean any.
    ``created_by`` is None if the student wished by the personal page. ``event`` is the act that
    fulfilled the wish.
    """

    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="move_wishes"
    )
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="move_wishes"
    )
    hall = models.CharField(max_length=MAX_HALL, blank=True)
    beds = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    event = models.ForeignKey(
        "housing.PlacementEvent", null=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = MoveWishQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "student"], name="one_move_wish_a_student")
        ]

    def __str__(self) -> str:
        return f"wish {self.pk} for another bed"

    def is_met_by(self, room: Room) -> bool:
        """Return True if a room is in the wished hall and has the wished number of beds."""
        return self.hall in ("", room.hall) and self.beds in (0, room.capacity)

    @property
    def words(self) -> str:
        """The wish in words, such as "Alder, double"; "any other room" without limits."""
        kind = kind_in_words(self.beds).lower() if self.beds else ""
        return ", ".join(part for part in (self.hall, kind) if part) or gettext("any other room")
