"""Rounds of room choice, the time slots of their students, the choices, and the mails."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.common.outgoing import OutgoingMail
from webapp.encryption.fields import SealedTextField

MAX_NAME = 80
MAX_SEED = 2**31 - 1


class RoundState(models.TextChoices):
    """State of a round; students see a round from its publication on."""

    DRAFT = "draft", _("Draft")
    OPEN = "open", _("Published")
    PAUSED = "paused", _("Paused")
    CLOSED = "closed", _("Closed")


class ChoiceRound(models.Model):
    """A round in which students of a placement choose rooms, each group in its time slot.

    ``column`` and ``value`` limit the round to the students with this answer; "" means all students
    without a room. ``rule`` is the column that orders the groups and ``rule_values`` its answers,
    first to last; "" means a lottery alone. ``seed`` decides the lottery. A slot takes ``minutes``,
    and lies between ``day_from`` and ``day_to`` of each day if both are set. With ``stays_open`` a
    slot ends only as the round closes. ``version`` counts the acts of staff.
    """

    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="choice_rounds"
    )
    name = models.CharField(max_length=MAX_NAME)
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()
    day_from = models.TimeField(null=True)
    day_to = models.TimeField(null=True)
    minutes = models.PositiveSmallIntegerField()
    stays_open = models.BooleanField(default=False)
    column = models.CharField(max_length=200, blank=True)
    value = models.CharField(max_length=200, blank=True)
    rule = models.CharField(max_length=200, blank=True)
    rule_values = models.JSONField(default=list)
    seed = models.PositiveIntegerField()
    state = models.CharField(
        max_length=8, choices=RoundState.choices, default=RoundState.DRAFT, db_index=True
    )
    version = models.PositiveIntegerField(default=1)
    paused_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["opens_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["placement", "name"], name="round_name_once_per_placement"
            ),
            models.CheckConstraint(
                condition=models.Q(closes_at__gt=models.F("opens_at")), name="round_has_time"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_draft(self) -> bool:
        """Return True before students get their slots."""
        return self.state == RoundState.DRAFT

    @property
    def is_live(self) -> bool:
        """Return True from the publication until the round is closed."""
        return self.state in LIVE


LIVE = (RoundState.OPEN, RoundState.PAUSED)


class ChoiceSlot(models.Model):
    """The time slot of one student; students of one group have the same ``turn`` and times."""

    round = models.ForeignKey(ChoiceRound, on_delete=models.CASCADE, related_name="slots")
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="choice_slots"
    )
    turn = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        ordering = ["turn", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["round", "student"], name="one_slot_a_round")
        ]

    def __str__(self) -> str:
        return f"slot {self.pk}"


class RoomChoice(models.Model):
    """The choice of a room for one student, as one act of the placement's history.

    A choice is in force while its act is not undone and the student lives, locked, in its room.
    ``chosen_by`` is the member of the group who chose.
    """

    round = models.ForeignKey(ChoiceRound, on_delete=models.CASCADE, related_name="choices")
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="room_choices"
    )
    chosen_by = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    room = models.ForeignKey(
        "housing.Room", null=True, on_delete=models.SET_NULL, related_name="choices"
    )
    event = models.ForeignKey(
        "housing.PlacementEvent", on_delete=models.CASCADE, related_name="room_choices"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["event", "student"], name="one_choice_an_act")
        ]

    def __str__(self) -> str:
        return f"choice {self.pk}"


class SlotMail(OutgoingMail):
    """A mail that tells a student the time slot; at most one for each slot.

    The text is made as the mail leaves, so that it holds the times of then. ``told`` is the start
    and end that the last mail was queued for.
    """

    slot = models.OneToOneField(ChoiceSlot, on_delete=models.CASCADE, related_name="mail")
    address = SealedTextField(max_length=254)
    told = models.JSONField()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"slot mail {self.pk}"
