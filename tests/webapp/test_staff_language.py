"""The language of the pages for staff: English, or that of STAFF_LANGUAGE with its catalogue."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from tests.webapp.pseudo_language import write_catalogue
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.openapi import PREFIX
from webapp.api.services import token_create
from webapp.common import formats
from webapp.jobs.claims import job_claim
from webapp.jobs.endings import job_fail
from webapp.jobs.failures import Failure
from webapp.jobs.services import job_enqueue
from webapp.surveys.views.student_pages import offered_languages
from webapp.translation.staff import staff_language

DUTCH = {
    "Questionnaires": "Vragenlijsten",
    "Housing": "Huisvesting",
    "Start from": "Beginnen met",
    "Choose what to start from.": "Kies een begin.",
    "The last day has to be after the first day.": "De laatste dag moet na de eerste dag liggen.",
    "today %(time)s": "vandaag %(time)s",
    "D j M Y, H:i": "D j F Y, H.i",
    "Waiting for a free worker": "Wacht op een vrije werker",
    "Nothing was saved.": "Er is niets bewaard.",
    "Nothing was changed.": "Er is niets gewijzigd.",
}


@pytest.fixture
def dutch(tmp_path: Path, settings: Any) -> Iterator[None]:
    """An installation whose staff read Dutch."""
    write_catalogue(tmp_path / "nl", DUTCH)
    settings.LOCALE_PATHS = [tmp_path, *settings.LOCALE_PATHS]
    settings.STAFF_LANGUAGE = settings.LANGUAGE_CODE = "nl"
    yield
    translation.deactivate()


@pytest.mark.usefixtures("dutch")
def test_staff_read_their_language_whatever_the_browser_asks(bob: User) -> None:
    client = Client(headers={"Accept-Language": "es"})
    client.force_login(bob)
    page = Page(client.get(reverse("surveys:new")))
    assert page.element.get("lang") == "nl"
    for text in ("Vragenlijsten", "Huisvesting", "Beginnen met"):
        assert page.says(text)
    refused = client.post(reverse("surveys:new"), {"title": "A", "form": "copy:x"})
    assert refused.status_code == 422


@pytest.mark.usefixtures("dutch")
def test_days_are_written_in_the_language_of_staff() -> None:
    now = datetime(2026, 3, 4, 14, 5, tzinfo=UTC)
    with timezone.override(UTC):
        assert formats.when(now, now) == "vandaag 14:05"
        assert formats.moment(now) == "wo 4 maart 2026, 14.05"


@pytest.mark.usefixtures("dutch")
@pytest.mark.django_db
def test_students_keep_their_languages() -> None:
    page = Client(headers={"Accept-Language": "es"}).get(reverse("surveys:enter"))
    assert page["Content-Language"] == "es"
    assert Page(page).says("Escribe")
    assert list(offered_languages(None)) == ["en", "es"]


@pytest.mark.usefixtures("dutch")
def test_programs_are_answered_in_english(bob: User) -> None:
    _, secret = token_create(user=bob, name="Campus", may_change=True, days=None)
    term = {"name": "Autumn", "code": "", "starts_on": "2026-08-20", "ends_on": "2026-08-01"}
    refused = Client().post(
        f"{PREFIX}/terms", term, "application/json", headers={"authorization": f"Bearer {secret}"}
    )
    assert refused.status_code == 422
    assert "The last day has to be after the first day." in refused.content.decode()


@pytest.mark.usefixtures("dutch")
def test_jobs_store_the_language_of_staff(bob: User) -> None:
    job = job_enqueue(user=bob, kind="roommates.simulate", parameters={})
    assert job.sentence == "Wacht op een vrije werker"
    claimed = job_claim(job_id=job.pk)
    assert claimed is not None
    job_fail(job=claimed, failure=Failure("Er is geen plaats. Er is niets bewaard."))
    job.refresh_from_db()
    assert job.error == "Er is geen plaats. Er is niets gewijzigd."


@pytest.mark.usefixtures("dutch")
def test_acts_of_students_are_stored_in_the_language_of_staff() -> None:
    with translation.override("es"), staff_language():
        assert translation.gettext("Questionnaires") == "Vragenlijsten"


def test_staff_read_english_by_default(client: Client, bob: User) -> None:
    client.force_login(bob)
    page = Page(client.get(reverse("surveys:new"), headers={"Accept-Language": "nl"}))
    assert page.element.get("lang") == "en"
    assert page.has("group", "Start from")


def started_with(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Load the settings in a new process; print what Django finds wrong, and a title."""
    code = (
        "import django; django.setup();"
        "from django.core.checks.translation import check_language_settings_consistent as check;"
        "from webapp.common.context_processors import _SECTION_TITLES as titles;"
        "print(check(None), titles['Housing'])"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "DEBUG": "1",
        "BETHE_HALL_INSTANCE": str(folder / "instance"),
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=os.environ | environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_chooses_the_language(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "nl", DUTCH)
    found = started_with(tmp_path, STAFF_LANGUAGE="nl", TRANSLATIONS=str(tmp_path))
    assert found.stdout.split() == ["[]", "Huisvesting"]


@pytest.mark.parametrize("folder", ["", "elsewhere"])
def test_a_language_without_a_catalogue_stops_the_start(tmp_path: Path, folder: str) -> None:
    translations = str(tmp_path / folder) if folder else ""
    found = started_with(tmp_path, STAFF_LANGUAGE="pt-br", TRANSLATIONS=translations)
    assert found.returncode == 1
    assert (
        "STAFF_LANGUAGE: expected en, or a language with a file pt_BR/LC_MESSAGES/django.mo in "
        "TRANSLATIONS, received 'pt-br'."
    ) in found.stderr
