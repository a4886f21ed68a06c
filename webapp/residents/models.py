"""Personal pages of students, consent to share contacts, and changes that students ask for."""

import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from webapp.common.outgoing import OutgoingMail
from webapp.encryption.fields import SealedTextField

MARK = "home"  # begins the nonce of a link, and tells it from the links of questionnaires
MAX_CONTACT = 120
MAX_ASK = 2_000
MAX_ANSWER = 1_000


def new_nonce() -> str:
    """Return the part of a personal link that cannot be guessed."""
    return MARK + secrets.token_urlsafe(9)


class ResidentPage(models.Model):
    """The personal page of a student of one cohort.

    ``nonce`` is part of the personal link: a new nonce makes the old link invalid. ``contact`` is
    what the student shows beside the e-mail to roommates who agreed too.
    """

    student = models.OneToOneField(
        "cohorts.Student", on_delete=models.CASCADE, related_name="resident_page"
    )
    nonce = models.CharField(max_length=24, default=new_nonce)
    contact = SealedTextField(max_length=MAX_CONTACT, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"page {self.pk}"


class ContactConsent(models.Model):
    """A student's consent that one roommate sees how to reach them; it counts if both agree."""

    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="contact_consents"
    )
    roommate = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["student", "roommate"], name="contact_consent_once")
        ]

    def __str__(self) -> str:
        return f"consent {self.pk}"


class Wish(models.TextChoices):
    """Kind of change that a student asks for."""

    ROOM = "room", _("Another room")
    HALL = "hall", _("Another hall")
    TOGETHER = "together", _("Live with somebody")
    APART = "apart", _("Another roommate")
    OTHER = "other", _("Something else")


class AskState(models.TextChoices):
    """State of a change that a student asked for."""

    OPEN = "open", gettext_lazy("Not decided")
    ACCEPTED = "accepted", gettext_lazy("Agreed")
    DECLINED = "declined", gettext_lazy("Declined")
    TAKEN_BACK = "taken_back", gettext_lazy("Taken back")


class ChangeAsk(models.Model):
    """A change of the room that a student asks for; staff decide and answer.

    A student has one open ask at a time. ``version`` counts the decisions, so that two staff do not
    overwrite each other. The texts are encrypted where a key is set.
    """

    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="change_asks"
    )
    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="change_asks"
    )
    wish = models.CharField(max_length=10, choices=Wish.choices)
    text = SealedTextField(max_length=MAX_ASK)
    state = models.CharField(max_length=10, choices=AskState.choices, default=AskState.OPEN)
    answer = SealedTextField(max_length=MAX_ANSWER, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["student"],
                condition=models.Q(state="open"),
                name="one_open_ask_a_student",
            )
        ]
        indexes = [models.Index(fields=["placement", "state"], name="asks_of_a_placement")]

    def __str__(self) -> str:
        return f"ask {self.pk}"

    @property
    def is_open(self) -> bool:
        """Return True if staff have not decided."""
        return self.state == AskState.OPEN


class ResidentMail(OutgoingMail):
    """A mail that leads a student to the personal page: about an offered bed, or a decision.

    The mail of an offer is sent only while the offer is open, the mail of an ask only until staff
    decide again. The text keeps the field of the personal link until the mail leaves.
    """

    STOPPED = "stopped"

    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="resident_mails"
    )
    offer = models.ForeignKey(
        "housing.WaitingOffer", null=True, on_delete=models.CASCADE, related_name="mails"
    )
    ask = models.ForeignKey(ChangeAsk, null=True, on_delete=models.CASCADE, related_name="mails")
    address = SealedTextField(max_length=254)
    subject = SealedTextField(max_length=200)
    text = SealedTextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"mail {self.pk}"
