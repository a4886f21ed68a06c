"""Questionnaires, and who answers them.

Answers are plain JSON per participant, keyed by the question: a question that has answers never
changes what they mean.
"""

import secrets
import uuid
from typing import Any

from django.db import models
from django.utils import timezone

from webapp.cohorts.models import Cohort
from webapp.common.encryption import SealedJSONField
from webapp.common.models import OrganisationOwned
from webapp.common.outgoing import OutgoingMail

# Letters and digits that nobody mistakes for each other when they are read out.
READABLE = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


def new_code(length: int = 8) -> str:
    """Return a code that can be read out and not be guessed."""
    return "".join(secrets.choice(READABLE) for _ in range(length))


def new_nonce() -> str:
    """Return the part of a personal link that makes it one of a kind, and revocable."""
    return secrets.token_urlsafe(9)


class Questionnaire(OrganisationOwned):
    """A questionnaire of an organisation.

    ``content`` is what :mod:`webapp.surveys.questions` describes, ``before`` what it was before the
    last change, for Undo. With ``asks_sign_in`` students sign in at the organisation's provider
    instead of by link or code. It is open from ``opens_at`` to
    ``closes_at``; before that it can be changed in every way, afterwards in its wording only.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    title = models.CharField(max_length=120)
    introduction = models.TextField(blank=True)
    who_sees = models.TextField(blank=True)
    contact = models.CharField(max_length=254, blank=True)
    content = models.JSONField()
    before = models.JSONField(null=True)
    version = models.PositiveIntegerField(default=1)
    code = models.CharField(max_length=12, unique=True, default=new_code)
    takes_code = models.BooleanField(default=True)
    asks_sign_in = models.BooleanField(default=False)
    opens_at = models.DateTimeField(null=True)
    closes_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "title"], name="questionnaire_title_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def was_opened(self) -> bool:
        """Whether it is or was open, so that its answers are fixed."""
        return self.opens_at is not None and self.opens_at <= timezone.now()

    @property
    def is_closed(self) -> bool:
        """Whether its time is over."""
        return self.closes_at is not None and self.closes_at <= timezone.now()

    @property
    def is_open(self) -> bool:
        """Whether students can answer now."""
        return self.was_opened and not self.is_closed


class Participant(models.Model):
    """Somebody who was invited or began by the code, with their answers.

    ``nonce`` is part of the personal link: another nonce, and the old link is worth nothing.
    ``code`` is what they show to somebody who wants to live with them. ``cohort`` is where their
    answers went. ``subject`` is who a provider said they are; ``bounced_at`` and ``bounce`` tell
    that a mail server does not know their address.
    """

    questionnaire = models.ForeignKey(
        Questionnaire, on_delete=models.CASCADE, related_name="participants"
    )
    nonce = models.CharField(max_length=16, default=new_nonce)
    code = models.CharField(max_length=12, default=new_code)
    email = models.EmailField(blank=True)
    identifier = models.CharField(max_length=200, blank=True)
    subject = models.CharField(max_length=255, blank=True)
    answers: Any = SealedJSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    language = models.CharField(max_length=8, blank=True)
    bounced_at = models.DateTimeField(null=True)
    bounce = models.CharField(max_length=200, blank=True)
    cohort = models.ForeignKey(Cohort, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["questionnaire", "code"], name="participant_code_once"),
            models.UniqueConstraint(
                fields=["questionnaire", "email"],
                condition=~models.Q(email=""),
                name="participant_email_once",
            ),
            models.UniqueConstraint(
                fields=["questionnaire", "subject"],
                condition=~models.Q(subject=""),
                name="participant_subject_once",
            ),
        ]
        indexes = [models.Index(fields=["questionnaire", "finished_at"], name="participant_done")]

    def __str__(self) -> str:
        return f"participant {self.pk}"

    @property
    def is_known(self) -> bool:
        """Whether a personal link or a provider says who this is, and not only they themselves."""
        return bool(self.email or self.subject)


class Mail(OutgoingMail):
    """One mail to one participant."""

    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="mails")
    is_reminder = models.BooleanField(default=False)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"mail {self.pk}"
