"""Templates of letters, letters sent to students, and questions about requests."""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.common.models import OrganisationOwned
from webapp.common.outgoing import OutgoingMail
from webapp.encryption.fields import SealedTextField


class Contact(models.TextChoices):
    """The contact whose e-mail a letter gives to roommates."""

    NOBODY = "", _("Nobody's")
    WHO_AGREED = "agreed", _("Theirs who said yes in a column")
    EVERYBODY = "all", _("Everybody's")


class LetterTemplate(OrganisationOwned):
    """A letter with named fields, such as [hall], for every student of a placement.

    ``contact`` decides whose e-mails replace [contacts]; ``consent_column`` is the column of the
    cohort with a yes of the students who agree.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    subject = models.CharField(max_length=150)
    text = models.TextField(max_length=10_000)
    reply_to = models.EmailField(blank=True)
    contact = models.CharField(max_length=8, choices=Contact.choices, blank=True)
    consent_column = models.CharField(max_length=200, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="letter_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Letter(OutgoingMail):
    """One letter to one student, as it was written, with the address at that time; encrypted.

    ``place`` is the reported place: [key of the room, bed, numbers of the roommates], then the two
    days of a student with dates of their own, and {"suite mates": numbers} if it names them. A
    student gets another letter of the same template only if that changed; ``number`` counts them.
    """

    BOUNCED, STOPPED = "bounced", "stopped"

    template = models.ForeignKey(LetterTemplate, on_delete=models.PROTECT, related_name="letters")
    placement = models.ForeignKey(
        "housing.Placement", null=True, on_delete=models.SET_NULL, related_name="letters"
    )
    student = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="letters")
    number = models.PositiveIntegerField(default=1)
    address = SealedTextField(max_length=254)
    subject = SealedTextField(max_length=200)
    text = SealedTextField()
    place: Any = models.JSONField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["template", "student", "number"], name="letter_numbered_once"
            )
        ]
        indexes = [models.Index(fields=["placement", "template", "state"], name="letters_of")]

    def __str__(self) -> str:
        return f"letter {self.pk}"


class RequestQuestion(OutgoingMail):
    """A mail that asks a student for the target of a request; at most one for each request.

    ``subject`` and ``text`` keep their fields: the typed name is filled in when the mail is sent,
    so that it is not stored once the request is resolved. ``times`` counts its sends.
    """

    request = models.OneToOneField(
        "housing.RoommateRequest", on_delete=models.CASCADE, related_name="question"
    )
    address = SealedTextField(max_length=254)
    subject = SealedTextField(max_length=200)
    text = SealedTextField()
    reply_to = models.EmailField(blank=True)
    times = models.PositiveSmallIntegerField(default=1)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"question {self.pk}"
