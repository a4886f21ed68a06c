"""Questionnaires, their participants and mails.

Answers are plain JSON per participant, keyed by the question: a question that has answers never
changes their meaning.
"""

import secrets
import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.cohorts.models import Cohort
from webapp.common.models import OrganisationOwned
from webapp.common.outgoing import OutgoingMail
from webapp.encryption.fields import SealedJSONField, SealedKeyField, SealedTextField
from webapp.surveys.content import ContentField

# Letters and digits that are not confused with each other when read out.
READABLE = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


def new_code(length: int = 8) -> str:
    """Return a code that can be read out and is hard to guess."""
    return "".join(secrets.choice(READABLE) for _ in range(length))


def new_nonce() -> str:
    """Return the part of a personal link that makes it unique and revocable."""
    return secrets.token_urlsafe(9)


class Questionnaire(OrganisationOwned):
    """A questionnaire of an organisation.

    ``content`` is described in :mod:`webapp.surveys.content`; ``before`` is the content before the
    last change, for Undo. With ``asks_sign_in`` students sign in at the organisation's provider
    instead of by link or code. It is open from ``opens_at`` to ``closes_at``; before opening
    everything can be changed, afterwards only the wording.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    title = models.CharField(max_length=120)
    introduction = models.TextField(blank=True)
    who_sees = models.TextField(blank=True)
    contact = models.CharField(max_length=254, blank=True)
    content: Any = ContentField()
    before: Any = ContentField(null=True)
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
        """Return True if the questionnaire is or was open, so that its answers are fixed."""
        return self.opens_at is not None and self.opens_at <= timezone.now()

    @property
    def is_closed(self) -> bool:
        """Return True if the closing time has passed."""
        return self.closes_at is not None and self.closes_at <= timezone.now()

    @property
    def is_open(self) -> bool:
        """Return True if students can answer now."""
        return self.was_opened and not self.is_closed


class Participant(models.Model):
    """A person who was invited or began by the code, with their answers.

    ``nonce`` is part of the personal link: a new nonce makes the old link invalid. ``code`` is the
    participant's code for roommate requests. ``cohort`` received their answers. ``subject`` is
    their identity at a provider; ``bounced_at`` and ``bounce`` record that a mail server does not
    know their address. ``unsubscribed_at`` is when they stopped the mails. Texts about
    the person are encrypted where a key is set.
    """

    questionnaire = models.ForeignKey(
        Questionnaire, on_delete=models.CASCADE, related_name="participants"
    )
    nonce = models.CharField(max_length=16, default=new_nonce)
    code = models.CharField(max_length=12, default=new_code)
    email = SealedKeyField(max_length=254, blank=True)
    name = SealedTextField(max_length=200, blank=True)
    identifier = SealedKeyField(max_length=200, blank=True)
    subject = SealedKeyField(max_length=255, blank=True)
    answers: Any = SealedJSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    language = models.CharField(max_length=8, blank=True)
    bounced_at = models.DateTimeField(null=True)
    bounce = SealedTextField(max_length=200, blank=True)
    unsubscribed_at = models.DateTimeField(null=True)
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
        """Return True if a personal link or a provider identifies the participant."""
        return bool(self.email or self.subject)


class WrittenAnswer(models.Model):
    """A text that one participant wrote in their own words, for staff to read.

    The words stay with the participant's answers, under ``key``, the key of the question: they are
    encrypted there. ``handled_at`` is None until staff mark the text as handled, and again when the
    student changes it. ``need`` is the need that staff made of it.
    """

    questionnaire = models.ForeignKey(
        Questionnaire, on_delete=models.CASCADE, related_name="written_answers"
    )
    participant = models.ForeignKey(
        Participant, on_delete=models.CASCADE, related_name="written_answers"
    )
    key = models.CharField(max_length=16)
    written_at = models.DateTimeField(default=timezone.now)
    handled_at = models.DateTimeField(null=True)
    handled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    need = models.CharField(max_length=80, blank=True)

    class Meta:
        ordering = ["-written_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["participant", "key"], name="written_answer_once")
        ]
        indexes = [models.Index(fields=["questionnaire", "handled_at"], name="written_open")]

    def __str__(self) -> str:
        return f"written answer {self.pk}"


class RequestedPerson(models.Model):
    """A participant's request to live with the person whose code they typed in one question.

    The code stays with the answers; this row can be searched. ``declined_at`` is when the requested
    person declined: the request then does not count.
    """

    questionnaire = models.ForeignKey(
        Questionnaire, on_delete=models.CASCADE, related_name="requested_people"
    )
    asker = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="asks_for")
    target = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="asked_by")
    key = models.CharField(max_length=16)
    declined_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["asker", "key"], name="request_once")]

    def __str__(self) -> str:
        return f"request {self.pk}"


class AnswerFile(models.Model):
    """A file that one participant sent as the answer to one question.

    ``file_key`` is the file's encryption key, itself encrypted: without the row no copy of the file
    can be read. Its name is encrypted too, since students write it.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="files")
    key = models.CharField(max_length=16)
    name: Any = SealedJSONField()
    media_type = models.CharField(max_length=60)
    size = models.PositiveIntegerField()
    file_key: Any = SealedJSONField()
    sent_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["sent_at"]
        constraints = [
            models.UniqueConstraint(fields=["participant", "key"], name="answer_file_once")
        ]

    def __str__(self) -> str:
        return f"file {self.pk}"


class Mail(OutgoingMail):
    """One mail to one participant.

    ``subject`` and ``text`` keep their fields, such as [link], which are filled in when the mail is
    sent: no personal link is in the database. ``base`` is the address of the installation that
    links begin with. ``address`` is where the mail goes if not to the participant's own e-mail.
    """

    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="mails")
    is_reminder = models.BooleanField(default=False)
    address = SealedKeyField(max_length=254, blank=True)
    base = models.CharField(max_length=200, blank=True)
    language = models.CharField(max_length=8, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"mail {self.pk}"


class ScheduledReminder(models.Model):
    """A reminder that is sent automatically at a time that staff chose.

    ``texts`` maps languages to texts. ``sent_at`` is when its mails were queued, ``n_mails`` how
    many there were, ``note`` why there were none.
    """

    questionnaire = models.ForeignKey(
        Questionnaire, on_delete=models.CASCADE, related_name="scheduled_reminders"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    due_at = models.DateTimeField()
    texts = models.JSONField(default=dict)
    base = models.CharField(max_length=200, blank=True)
    sent_at = models.DateTimeField(null=True)
    n_mails = models.PositiveIntegerField(default=0)
    note = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["due_at"]
        indexes = [models.Index(fields=["sent_at", "due_at"], name="reminder_due")]

    def __str__(self) -> str:
        return f"reminder {self.pk}"


class SetAside(models.Model):
    """Finished answers that staff do not count, since another set counts for that person."""

    participant = models.OneToOneField(
        Participant, on_delete=models.CASCADE, related_name="set_aside"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"set aside: {self.participant}"
