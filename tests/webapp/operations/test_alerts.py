"""Alert me: one mail when a check turns bad and has lasted, one when it is well again."""

import socket
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused
from webapp.accounts.models import User
from webapp.accounts.services import operator_set
from webapp.audit.models import AuditLine
from webapp.common.models import Installation
from webapp.jobs.models import Worker
from webapp.monitoring import readiness
from webapp.operations import alarms, alerts
from webapp.operations.models import Alert, AlertMail, AlertReader
from webapp.operations.services import alerts_start

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def all_is_well(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "checks", {})
    monkeypatch.setattr(readiness, "_last", None)
    monkeypatch.setattr(alarms, "_room", lambda: (1e12, 2e12))
    Installation.objects.create(pk=1, store_mark="x", backed_up_at=timezone.now())


def an_old_backup() -> None:
    Installation.objects.update(backed_up_at=timezone.now() - timedelta(days=5))


def time_passes() -> None:
    """A minute, for every alert there is."""
    for alert in Alert.objects.filter(ended_at=None):
        alert.began_at -= timedelta(minutes=1)
        alert.save()


def look() -> list[str]:
    """One sweep; the subjects of what it sent."""
    alerts.alerts_note(fresh=True)
    alerts.alert_mails_send()
    sent = [message.subject for message in mail.outbox]
    mail.outbox.clear()
    return sent


def test_one_mail_when_it_lasts_and_one_when_it_is_well_again(otto: User) -> None:
    alerts_start(user=otto, address="otto@north.edu")
    assert look() == []
    an_old_backup()
    assert look() == []
    time_passes()
    assert look() == ["Bethe Hall: The last backup is 120 h old"]
    time_passes()
    assert look() == []
    Installation.objects.update(backed_up_at=timezone.now())
    assert look() == ["Bethe Hall: Resolved: The last backup is 120 h old"]
    assert look() == []
    assert AlertMail.objects.filter(address="otto@north.edu").count() == 2


def test_what_is_bad_for_a_moment_makes_no_mail(otto: User) -> None:
    alerts_start(user=otto, address="otto@north.edu")
    an_old_backup()
    look()
    Installation.objects.update(backed_up_at=timezone.now())
    assert look() == []
    assert not Alert.objects.exists()


def test_each_silent_worker_is_told_by_itself(otto: User) -> None:
    alerts_start(user=otto, address="otto@north.edu")
    for name in ("short-a@one", "long-b@two"):
        seen_at = timezone.now() - timedelta(minutes=5)
        Worker.objects.create(name=name, processes=1, seen_at=seen_at)
    look()
    time_passes()
    assert len(look()) == 2
    Worker.objects.filter(name="long-b@two").update(seen_at=timezone.now())
    assert len(look()) == 1


def test_another_hosts_disk_is_that_hosts_to_judge(
    otto: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts_start(user=otto, address="otto@north.edu")
    monkeypatch.setattr(socket, "gethostname", lambda: "housing-1")
    monkeypatch.setattr(alarms, "_room", lambda: (1e9, 2e12))
    look()
    time_passes()
    assert look() == ["Bethe Hall: 1.0 GB are free on this web server"]
    monkeypatch.setattr(socket, "gethostname", lambda: "housing-2")
    monkeypatch.setattr(alarms, "_room", lambda: (1e12, 2e12))
    assert look() == []
    monkeypatch.setattr(socket, "gethostname", lambda: "housing-1")
    assert len(look()) == 1


def test_who_is_no_operator_any_more_is_not_told(otto: User) -> None:
    alerts_start(user=otto, address="otto@north.edu")
    operator_set(user=otto, is_operator=False)
    an_old_backup()
    look()
    time_passes()
    assert look() == []


def test_the_page_starts_and_ends_the_mails(otto: User, client_of: ClientOf) -> None:
    client = client_of(otto)
    page = reverse("operations:page")
    refused = client.post(reverse("operations:alert-me"), {"address": "no address"})
    error = "That is not an e-mail address. Nothing was changed."
    check_refused(refused, {"address": "no address"}, field="address", error=error)
    client.post(reverse("operations:alert-me"), {"address": "otto@north.edu"})
    assert Page(client.get(page)).one("status").says("Mails go to otto@north.edu")
    client.post(reverse("operations:alert-me-no-more"))
    assert not AlertReader.objects.exists()
    assert (
        AuditLine.objects.filter(verb__in=["started alerts to", "stopped alerts to"]).count() == 2
    )
