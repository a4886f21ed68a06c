"""Readers of alert mails, and alerts with their beginning and end."""

from django.conf import settings
from django.db import models

from webapp.common.outgoing import OutgoingMail


class AlertReader(models.Model):
    """An operator who gets a mail when a fault begins, and when it is over."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_reader"
    )
    address = models.EmailField()

    def __str__(self) -> str:
        return str(self.user)


class Alert(models.Model):
    """A present or past fault; ``host`` is the host whose disk or network it concerns, "" for all.

    At most one alert of each key and host is open. Its mail is sent once it has lasted, so that a
    part that is slow once causes no mail.
    """

    key = models.CharField(max_length=120)
    host = models.CharField(max_length=120, blank=True)
    title = models.CharField(max_length=200)
    detail = models.TextField()
    began_at = models.DateTimeField()
    told_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key", "host"],
                condition=models.Q(ended_at=None),
                name="one_open_alert_of_a_check",
            )
        ]

    def __str__(self) -> str:
        return self.title


class AlertMail(OutgoingMail):
    """One mail to one reader about the beginning or the end of an alert."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="mails")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    address = models.EmailField()
    is_end = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "user", "is_end"], name="one_alert_mail_a_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.user}"
