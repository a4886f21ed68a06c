"""Who is told when something is wrong, and what was wrong from when to when."""

from django.conf import settings
from django.db import models

from webapp.common.outgoing import OutgoingMail


class AlertReader(models.Model):
    """An administrator who gets a mail when a check turns bad, and when it is well again."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_reader"
    )
    address = models.EmailField()

    def __str__(self) -> str:
        return str(self.user)


class Alert(models.Model):
    """A check that is bad, or was; ``host`` is whose disk or network it is about, "" for all.

    At most one of each key and host has not ended. It is told once it has lasted, so that a part
    that is slow once makes no mail.
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
