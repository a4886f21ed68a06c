"""Previews of files about students: who sees names, and files of another year."""

from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import without_people
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.student_files import student_file_create

ClientOf = Callable[[User], Client]


@pytest.fixture
def cohort(bob: User) -> Cohort:
    made = placed_cohort(bob).cohort
    made.students.filter(number=1006).update(name="Anna Ash")
    return made


def late(client: Client, cohort: Cohort, text: str) -> Page:
    file = SimpleUploadedFile("late.csv", text.encode())
    address = reverse("cohorts:latecomers", args=[cohort.pk])
    answer = client.post(address, {"file": file, "action": "file"}, follow=True)
    return Page(answer)


def hide(bob: User) -> None:
    bob.organisation.names_for = "administrators"
    bob.organisation.save()


def preview(user: User, cohort: Cohort, text: str, purpose: str = "requests") -> str:
    made = student_file_create(
        user=user, cohort=cohort, purpose=purpose, back="/", filename="f.csv",
        size=len(text), read=text.encode,
    )  # fmt: skip
    return reverse("cohorts:student-file", args=[cohort.pk, made.pk])


def test_a_preview_shows_people_only_to_those_who_see_names(
    client_of: ClientOf, bob: User, cohort: Cohort
) -> None:
    text = "student,wants\nAnna Ash,Ben Birch\nDan Dogwood,Cleo Cedar\nZed Zoo,Finn\n"
    address = preview(bob, cohort, text)
    shown = Page(client_of(bob).get(address))
    assert shown.has("row", "Anna Ash")
    assert shown.says("S-1006, +475")
    hide(bob)
    hidden = client_of(bob).get(address)
    words = Page(hidden)
    assert hidden.status_code == 200
    for secret in ("Anna", "Ben Birch", "Dogwood", "Zed", "+475", "birch@"):
        at = words.source.find(secret)
        assert at == -1, words.source[max(0, at - 200) :][:260]
    assert words.has("button", "S-1006"), "the row can still be decided"
    made = cohort.drafts.get()
    sent = {"action": "same", "row": "2", "position": "5", "version": made.version}
    client_of(bob).post(address, sent)
    made.refresh_from_db()
    assert made.choices["same"] == {"2: Anna Ash": 5}


def test_a_preview_of_pairs_hides_people_too(
    client_of: ClientOf, bob: User, cohort: Cohort
) -> None:
    text = b"a,b\nAnna Ash,Ben Birch\nZed Zoo,Cleo Cedar\n+473,+473\n"
    made = draft_create(
        user=bob, filename="p.csv", size=len(text), read=lambda: text, cohort=cohort
    )
    address = reverse("cohorts:pairs-draft", args=[cohort.pk, made.pk])
    assert Page(client_of(bob).get(address)).one("row", "2").says("Ben Birch")
    hide(bob)
    words = Page(client_of(bob).get(address))
    for secret in ("Anna", "Birch", "Zed", "+473", "+475", "+470"):
        at = words.source.find(secret)
        assert at == -1, words.source[max(0, at - 200) :][:260]


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("Row 1,003: +470 is in First-years already. Leave it out.",
         "Row 1,003: look at this row in your file."),
        ("Row 3: a and b are different students.", "Row 3: … are different students."),
        ("Row 4: Zed is not a student of this cohort.",
         "Row 4: … is not a student of this cohort."),
        ("Row 5: 12 stands in row 3 already.",
         "Row 5 repeats another row. Look at it in your file."),
        ("“Anna Ash” is nobody.", "“…” is nobody."),
        ("No column identifies the students.", "No column identifies the students."),
    ],
)  # fmt: skip
def test_sentences_keep_rows_and_lose_people(sentence: str, shown: str) -> None:
    assert without_people(sentence) == shown


def test_the_survey_of_another_year_is_recognised_as_such(
    client_of: ClientOf, bob: User, mallory: User, cohort: Cohort
) -> None:
    last = placed_cohort(bob, "Last year").cohort
    for k, student in enumerate(last.students.order_by("number")):
        Student.objects.filter(pk=student.pk).update(original_id=f"OLD{k}")
    theirs = placed_cohort(mallory, "Secret year").cohort
    for k, student in enumerate(theirs.students.order_by("number")):
        Student.objects.filter(pk=student.pk).update(original_id=f"X{k}")
    rows = "".join(f"OLD{k},yes\n" for k in range(6))
    page = late(client_of(bob), cohort, f"student id,Share my e-mail\n{rows}")
    assert page.has(
        "status", "6 of 6 students are in Last year, so this is probably last year’s survey."
    )
    assert page.has("status", "Import as a cohort")
    rows = "".join(f"+47{k},yes\n" for k in range(6))
    page = late(client_of(bob), cohort, f"student id,Share my e-mail\n{rows}")
    assert page.has("status", "6 of 6 students are in First-years already")
    for prefix in ("X", "NEW"):  # of another organisation, and of nobody
        rows = "".join(f"{prefix}{k},yes\n" for k in range(6))
        page = late(client_of(bob), cohort, f"student id,Share my e-mail\n{rows}")
        assert "probably" not in page.source
        assert "Secret year" not in page.source


def test_a_list_of_rooms_in_the_place_of_late_arrivals_is_moved(
    client_of: ClientOf, bob: User, cohort: Cohort
) -> None:
    rows = "".join(f"Alder,{k},2\n" for k in range(101, 120))
    page = late(client_of(bob), cohort, f"Building,Room,Beds\n{rows}")
    assert page.has("status", "These are rooms. Import as a building list?")
    (move,) = (one.address for one in page.every("form") if one.address.endswith("/move/"))
    moved = client_of(bob).post(move, {"to": "rooms"}, follow=True)
    assert "/buildings/drafts/" in moved.request["PATH_INFO"]
