"""Uploads that wait: what their pages show, whose changes count, and when they go."""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from engine.tabular.undo import MAX_STEPS, taken_back, undo_step, with_step
from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts import draft_files
from webapp.cohorts.draft_files import draft_path
from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.services.drafts import draft_create, draft_review, draft_table, drafts_expire
from webapp.files.orphaned_files import remove_orphaned_files
from webapp.files.store.protocol import UNFINISHED_SECONDS

STRANGERS = Path(__file__).parents[2] / "tabular" / "strangers"
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
WITH_NAMES = b"student_id,Full name,Bedtime\n" + b"".join(
    b"N%03d,Person Number%03d,%s\n" % (k, k, (b"Early", b"Late")[k % 2]) for k in range(24)
)


@pytest.fixture
def make_draft(bob: User) -> Callable[..., Draft]:
    """A function that uploads a file as bob."""

    def make(data: bytes = b"", cohort: Cohort | None = None) -> Draft:
        data = data or survey_csv()
        return draft_create(
            user=bob, filename="s.csv", size=len(data), read=lambda: data, cohort=cohort
        )

    return make


def address_of(draft: Draft, page: str = "draft") -> str:
    return reverse(f"cohorts:{page}", args=[draft.pk])


def test_a_forgotten_upload_goes_with_its_file(
    bob: User, make_draft: Callable, django_capture_on_commit_callbacks: Callable
) -> None:
    old, new = make_draft(), make_draft()
    path = draft_path(bob.organisation_id, old.pk)
    days = timedelta(days=Draft.KEPT_DAYS - 1, minutes=1)
    Draft.objects.filter(pk=old.pk).update(created_at=timezone.now() - days)
    with django_capture_on_commit_callbacks(execute=True):
        assert drafts_expire() == 1
    assert Draft.objects.get() == new
    assert not path.exists()
    line = AuditLine.objects.get(verb="expired")
    assert (line.username, line.organisation, line.details) == (
        "system",
        bob.organisation,
        {"rows": 24},
    )
    assert drafts_expire() == 0


def test_a_file_without_its_draft_goes_after_a_day(bob: User, make_draft: Callable) -> None:
    kept, lost = make_draft(), make_draft()
    paths = [draft_path(bob.organisation_id, draft.pk) for draft in (kept, lost)]
    Draft.objects.filter(pk=lost.pk)._raw_delete("default")  # as if the row had never been written
    assert remove_orphaned_files() == 0
    for path in paths:
        os.utime(path, (time.time() - UNFINISHED_SECONDS - 1,) * 2)
    assert remove_orphaned_files() == 1
    assert [path.exists() for path in paths] == [True, False]


def test_rows_are_shown_without_ignored_columns_and_with_a_line(
    bob: User, client_of: Callable, make_draft: Callable
) -> None:
    draft, client = make_draft(WITH_NAMES), client_of(bob)
    columns = Page(client.get(address_of(draft)))
    assert "Person Number" not in columns.source
    assert not AuditLine.objects.filter(verb="looked up ids").exists()
    rows = Page(client.get(address_of(draft) + "?tab=rows"))
    assert rows.has("row", "N003")
    assert "Person Number" not in rows.source
    assert "Full name" not in rows.source
    line = AuditLine.objects.get(verb="looked up ids")
    assert (line.user, line.target_name, line.details) == (bob, "s.csv", {"rows": 24})


def test_choosing_another_file_discards_nothing(
    bob: User, client_of: Callable, make_draft: Callable
) -> None:
    page = Page(client_of(bob).get(address_of(make_draft())))
    assert page.one("link", "Choose another file").address == "/cohorts/import/"


def test_a_discarded_file_of_pairs_leads_back_to_its_cohort(
    bob: User, client_of: Callable, make_cohort: Callable, make_draft: Callable
) -> None:
    cohort = make_cohort(bob)
    draft = make_draft(b"a,b\nN000,N001\n", cohort)
    answer = client_of(bob).post(address_of(draft, "draft-discard"))
    assert answer.url == reverse("cohorts:pairs-upload", args=[cohort.pk])


def test_columns_that_somebody_else_changed_are_not_imported_unseen(
    bob: User, carol: User, client_of: Callable, make_draft: Callable
) -> None:
    draft, client = make_draft(), client_of(bob)
    page = Page(client.get(address_of(draft)))
    (form,) = page.element.xpath("//form[@id='import-form']")
    assert form.get("action").startswith(address_of(draft, "draft-confirm"))
    (shown,) = page.element.xpath("//input[@name='version'][@form='import-form']/@value")
    change = {"action": "role", "column": "1", "value": "ignore", "version": shown}
    client_of(carol).post(address_of(draft, "draft-change"), change)
    for sent in ({"version": shown}, {}):
        posted = {"name": "First-years", **sent}
        answer = client.post(address_of(draft, "draft-confirm"), posted, follow=True)
        name = Page(answer, status=422).field("Name of the cohort")
        assert "changed or finished by somebody else" in name.description
    assert not Cohort.objects.exists()


def test_columns_of_pairs_that_somebody_else_chose_are_not_overwritten(
    bob: User, client_of: Callable, make_cohort: Callable, make_draft: Callable
) -> None:
    cohort = make_cohort(bob)
    draft = make_draft(b"room,a,b\n1,N000,N001\n", cohort)
    address = reverse("cohorts:pairs-draft", args=[cohort.pk, draft.pk])
    chosen = {"first": "2", "second": "1", "version": 1}
    client = client_of(bob)
    client.post(address, chosen)
    late = client.post(address, chosen | {"second": "0"}, follow=True)
    assert Page(late).one("alert").says("Somebody else changed this import")
    draft.refresh_from_db()
    assert draft.choices["columns"] == [2, 1]


def press(client: Client, draft: Draft, action: str, **fields: object) -> Page:
    draft.refresh_from_db()
    sent = {"action": action, "version": draft.version, **fields}
    page = Page(client.post(address_of(draft, "draft-change"), sent, follow=True))
    draft.refresh_from_db()
    return page


def test_each_change_is_taken_back_in_turn(
    bob: User, client_of: Callable, make_draft: Callable
) -> None:
    draft, client = make_draft(), client_of(bob)
    before = draft.choices
    assert not Page(client.get(address_of(draft))).has("button", "Undo")
    press(client, draft, "role", column="1", value="ignore")
    ignored = draft.choices
    press(client, draft, "leave_out", row="5")
    page = press(client, draft, "read_anew", header_row="2")
    assert draft.n_rows == 23
    assert page.has("button", "Undo")
    press(client, draft, "undo")
    assert draft.n_rows == 24
    press(client, draft, "undo")
    assert draft.choices == ignored
    page = press(client, draft, "undo")
    assert draft.choices == before
    assert not page.has("button", "Undo")
    assert press(client, draft, "undo").one("alert").says("There is nothing to undo.")


def test_undo_takes_nothing_of_somebody_else_back(
    bob: User, carol: User, alice: User, mallory: User, client_of: Callable, make_draft: Callable
) -> None:
    draft = make_draft()
    press(client_of(bob), draft, "role", column="1", value="ignore")
    seen = draft.version
    press(client_of(carol), draft, "role", column="2", value="ignore")
    now = draft.choices
    sent = {"action": "undo", "version": seen}
    late = client_of(bob).post(address_of(draft, "draft-change"), sent, follow=True)
    assert Page(late).one("alert").says("Somebody else changed this import")
    sent["version"] = draft.version
    assert client_of(mallory).post(address_of(draft, "draft-change"), sent).status_code == 404
    assert client_of(alice).post(address_of(draft, "draft-change"), sent).status_code == 403
    draft.refresh_from_db()
    assert draft.choices == now


def test_choices_of_pairs_are_taken_back(
    bob: User, client_of: Callable, make_cohort: Callable, make_draft: Callable
) -> None:
    cohort = make_cohort(bob)
    draft = make_draft(b"room,a,b\n1,N000,N001\n", cohort)
    before = draft.choices
    address = reverse("cohorts:pairs-draft", args=[cohort.pk, draft.pk])
    client = client_of(bob)
    client.post(address, {"first": "2", "second": "1", "version": 1})
    page = Page(client.post(address, {"action": "undo", "version": 2}, follow=True))
    draft.refresh_from_db()
    assert draft.choices == before
    assert not page.element.xpath("//*[@value='undo']")


def test_the_last_steps_are_kept() -> None:
    choices: dict = {"columns": [0, 0], "keep": ""}
    steps: list = []
    for k in range(MAX_STEPS + 5):
        after = {"columns": [k, 0], "keep": "" if k else "latest", f"more {k}": k}
        steps, choices = with_step(steps, undo_step(choices, after)), after
    assert len(steps) == MAX_STEPS
    for k in reversed(range(5, MAX_STEPS + 5)):
        choices = taken_back(choices, steps.pop())
        assert choices == {"columns": [k - 1, 0], "keep": "", f"more {k - 1}": k - 1}


def test_an_upload_is_not_readable_without_its_row_or_its_key(
    bob: User, make_draft: Callable, settings: object
) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    draft = make_draft(WITH_NAMES)
    content = draft_path(bob.organisation_id, draft.pk).read_bytes()
    with connection.cursor() as cursor:
        cursor.execute("SELECT choices, file_key FROM cohorts_draft")
        columns = cursor.fetchone()
    for kept in (content, *(text.encode() for text in columns)):
        assert b"Person" not in kept
        assert b"Bedtime" not in kept
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    call_command("encrypt_again", stdout=StringIO())
    settings.ENCRYPTION_KEYS = [NEW]
    again = Draft.objects.get(pk=draft.pk)
    draft_files._file.cache_clear()
    assert draft_table(again).rows[0][1] == "Person Number000"


def test_an_upload_of_before_is_still_read(bob: User, make_draft: Callable) -> None:
    draft = make_draft()
    path = draft_path(bob.organisation_id, draft.pk)
    path.write_bytes(Fernet(draft.file_key).decrypt(path.read_bytes()))
    Draft.objects.update(file_key=None)
    assert draft_table(Draft.objects.get()).n_rows == 24


def test_what_a_workbook_hides_and_merges_is_kept_with_its_draft(bob: User) -> None:
    for name, title in (
        ("xlsx_hidden_rows.xlsx", "12 rows are hidden in the file"),
        ("xlsx_merged_header.xlsx", "The header stands in 2 rows"),
    ):
        data = (STRANGERS / name).read_bytes()
        draft = draft_create(user=bob, filename=name, size=len(data), read=lambda data=data: data)
        draft_files._file.cache_clear()
        assert title in [cause.title for cause in draft_review(draft).causes]
