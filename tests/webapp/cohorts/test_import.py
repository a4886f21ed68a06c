"""Uploading, checking and importing a cohort through the pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.draft_files import draft_path
from webapp.cohorts.models import Cohort, Draft, Student

UPLOAD = "/cohorts/import/"


def upload(client: Client, file: Any) -> Draft:
    response = client.post(UPLOAD, {"file": file})
    assert response.status_code == 302, response.content.decode()[:500]
    return Draft.objects.latest("created_at")


def confirm(client: Client, draft: Draft, name: str = "First-years", version: int = 1) -> Any:
    address = reverse("cohorts:draft-confirm", args=[draft.pk])
    return client.post(address, {"name": name, "version": version}, follow=True)


def test_staff_import_a_cohort(bob: User, client_of: Callable, as_upload: Callable) -> None:
    client = client_of(bob)
    draft = upload(client, as_upload(survey_csv()))
    page = Page(client.get(reverse("cohorts:draft", args=[draft.pk])))
    assert page.has("heading", "Check the file")
    assert page.has("button", "Import 24 students")
    response = confirm(client, draft)
    cohort = Cohort.objects.get()
    assert response.redirect_chain[-1][0] == reverse("cohorts:cohort", args=[cohort.pk])
    assert (cohort.n_students, len(cohort.questions), cohort.constraints) == (24, 3, ["Gender"])
    student = cohort.students.first()
    assert (student.label, student.original_id) == ("S-1001", "N000")
    assert student.attributes == {"Gender": "M"}
    assert not Draft.objects.exists()
    assert AuditLine.objects.filter(verb="imported", user=bob).exists()


def test_the_file_of_a_draft_goes_with_it(
    bob: User,
    client_of: Callable,
    as_upload: Callable,
    django_capture_on_commit_callbacks: Callable,
) -> None:
    client = client_of(bob)
    draft = upload(client, as_upload(survey_csv()))
    path = draft_path(bob.organisation_id, draft.pk)
    assert path.stat().st_mode & 0o077 == 0
    with django_capture_on_commit_callbacks(execute=True):
        confirm(client, draft)
    assert not path.exists()


def test_original_ids_are_not_on_the_page(
    bob: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:cohort", args=[cohort.pk]) + "?tab=students"
    page = Page(client_of(bob).get(address))
    assert page.has("link", "S-1001")
    assert "N000" not in page.source


def test_asking_for_original_ids_is_written_down(
    alice: User, bob: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:cohort", args=[cohort.pk]) + "?tab=students&originals=1"
    assert "N000" not in Page(client_of(alice).get(address)).source
    assert not AuditLine.objects.filter(verb="looked up ids").exists()
    assert Page(client_of(bob).get(address)).one("row", "S-1001").says("N000")
    assert AuditLine.objects.filter(verb="looked up ids", user=bob).exists()


def test_viewers_may_not_import(alice: User, client_of: Callable, as_upload: Callable) -> None:
    client = client_of(alice)
    assert client.get(UPLOAD).status_code == 403
    assert client.post(UPLOAD, {"file": as_upload(survey_csv())}).status_code == 403
    assert not Draft.objects.exists()


def test_other_organisations_do_not_see_a_draft(
    bob: User, mallory: User, client_of: Callable, as_upload: Callable
) -> None:
    draft = upload(client_of(bob), as_upload(survey_csv()))
    foreign = client_of(mallory)
    assert foreign.get(reverse("cohorts:draft", args=[draft.pk])).status_code == 404
    for name in ("draft-change", "draft-confirm", "draft-discard"):
        assert foreign.post(reverse(f"cohorts:{name}", args=[draft.pk])).status_code == 404
    assert Draft.objects.filter(pk=draft.pk).exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"%PDF-1.4", "not CSV or XLSX"),
        (b"id,Tidy\n", "no rows below it"),
        (b"id,Tidy\n1,=1+1\n", "holds a formula"),
    ],
)
def test_bad_files_get_a_sentence_and_change_nothing(
    bob: User, client_of: Callable, as_upload: Callable, data: bytes, words: str
) -> None:
    response = client_of(bob).post(UPLOAD, {"file": as_upload(data)})
    assert response.status_code == (302 if not data and words != "empty" else 422)
    assert Page(response, status=422).has("alert", words)
    assert not Draft.objects.exists()
    assert not Cohort.objects.exists()


def test_errors_stop_the_import(bob: User, client_of: Callable, as_upload: Callable) -> None:
    client = client_of(bob)
    draft = upload(client, as_upload(survey_csv(student_id={5: "N001"})))
    address = reverse("cohorts:draft", args=[draft.pk])
    assert Page(client.get(address)).has("button", "1 person answered more than once")
    page = Page(client.get(address + "?column=0"))
    assert page.has("row", "Row 7: N001 appears twice, first in row 3.")
    response = confirm(client, draft)
    name = Page(response, status=422).field("Name of the cohort")
    assert "Nothing was imported" in name.description
    assert not Cohort.objects.exists()


def test_a_button_fixes_the_problem(bob: User, client_of: Callable, as_upload: Callable) -> None:
    client = client_of(bob)
    draft = upload(client, as_upload(survey_csv(student_id={5: "N001"})))
    address = reverse("cohorts:draft-change", args=[draft.pk])
    client.post(address, {"action": "leave_out", "row": "7", "version": 1})
    confirm(client, draft, version=2)
    assert Cohort.objects.get().n_students == 23


def test_two_people_do_not_overwrite_each_other(
    bob: User, carol: User, client_of: Callable, as_upload: Callable
) -> None:
    draft = upload(client_of(bob), as_upload(survey_csv()))
    address = reverse("cohorts:draft-change", args=[draft.pk])
    first = {"action": "role", "column": "1", "value": "ignore", "version": 1}
    client_of(bob).post(address, first)
    late = client_of(carol).post(address, first | {"column": "2"}, follow=True)
    assert Page(late).one("alert").says("Somebody else changed this import")
    draft.refresh_from_db()
    roles = [column["role"] for column in draft.choices["columns"]]
    assert roles == ["id", "ignore", "question", "question", "constraint"]


def test_a_name_is_used_once(
    bob: User, client_of: Callable, as_upload: Callable, make_cohort: Callable
) -> None:
    make_cohort(bob, "First-years")
    client = client_of(bob)
    draft = upload(client, as_upload(survey_csv()))
    name = Page(confirm(client, draft), status=422).field("Name of the cohort")
    assert "already a cohort called" in name.description
    assert Cohort.objects.count() == 1
    assert Draft.objects.filter(pk=draft.pk).exists()


def test_a_failure_in_the_middle_leaves_no_half_cohort(
    bob: User, make_cohort: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        Student.objects.create(cohort=args[0][0].cohort, number=1, original_id="x", answers=[])
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(Student.objects, "bulk_create", fail)
    with pytest.raises(DatabaseError):
        make_cohort(bob)
    assert not Cohort.objects.exists()
    assert not Student.objects.exists()
    assert Draft.objects.count() == 1


def test_ids_are_made_when_there_is_no_id_column(bob: User, make_cohort: Callable) -> None:
    data = survey_csv().replace(b"student_id", b"Favourite colour")
    rows = [b",".join(line.split(b",")[1:]) for line in data.splitlines()]
    cohort = make_cohort(bob, data=b"\n".join(rows))
    assert cohort.ids_made
    assert cohort.students.first().original_id == "S-1001"
