"""Rosters for student systems: stored layouts, own columns, terms, and who may take names."""

import csv
import io
from collections.abc import Callable
from datetime import date

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, Student
from webapp.housing.errors import HousingError
from webapp.housing.exports import DATES, SYSTEMS
from webapp.housing.models import Placement, Term
from webapp.housing.services.terms import placement_term_set, term_remove, term_save
from webapp.reports.forms import _part
from webapp.reports.models import RosterShape
from webapp.reports.services import shape_save

ClientOf = Callable[[User], Client]
TERM = {"starts_on": date(2026, 8, 20), "ends_on": date(2026, 12, 18)}


@pytest.fixture
def term(bob: User) -> Term:
    return term_save(user=bob, term=None, name="Autumn 2026", code="202710", **TERM)


@pytest.fixture
def placement(bob: User, term: Term) -> Placement:
    made = placed_cohort(bob)
    placement_term_set(user=bob, placement=made, term=term)
    return Placement.objects.get(pk=made.pk)


def table(answer: object) -> list[list[str]]:
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def take(client: Client, placement: Placement, query: str, kind: str = "csv") -> object:
    return client.get(reverse("housing:placement-export", args=[placement.pk, kind]) + query)


WANTED = {
    "starrez": (
        ["ID1", "RoomSpace", "TermSession", "CheckInDate", "CheckOutDate"],
        ["'+470", "Alder 101-1", "202710", "08/20/2026", "12/18/2026"],
    ),
    "erezlife": (
        ["Student ID", "Building", "Room", "Bed", "Term", "Start Date", "End Date"],
        ["'+470", "Alder", "101", "1", "Autumn 2026", "2026-08-20", "2026-12-18"],
    ),
    "housing-cloud": (
        ["Student ID", "Building", "Floor", "Room", "Bed", "Term", "Move In Date",
         "Move Out Date"],
        ["'+470", "Alder", "1", "101", "1", "Autumn 2026", "08/20/2026", "12/18/2026"],
    ),
    "banner": (
        ["SPRIDEN_ID", "SLRRASG_TERM_CODE", "SLRRASG_BLDG_CODE", "SLRRASG_ROOM_NUMBER",
         "SLRRASG_BEGIN_DATE", "SLRRASG_END_DATE"],
        ["'+470", "202710", "Alder", "101", "20-AUG-2026", "18-DEC-2026"],
    ),
    "jenzabar": (
        ["ID_NUM", "SESS_CDE", "BLDG_CDE", "ROOM_CDE", "ROOM_SLOT_NUM", "BEGIN_DTE", "END_DTE"],
        ["'+470", "202710", "Alder", "101", "1", "08/20/2026", "12/18/2026"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", SYSTEMS)
def test_every_student_system_has_a_layout(
    client_of: ClientOf, bob: User, placement: Placement, key: str
) -> None:
    rows = table(take(client_of(bob), placement, f"?shape={key}"))
    assert rows[:2] == [*WANTED[key]]
    assert len(rows) == 7
    assert not any(cell.startswith("20") and "-" in cell for cell in rows[-1]), "no bed, no days"
    line = AuditLine.objects.get(verb="exported")
    assert line.details["columns"] == [column for column, _ in SYSTEMS[key].columns]
    book = openpyxl.load_workbook(
        io.BytesIO(take(client_of(bob), placement, f"?shape={key}", "xlsx").content)
    )
    assert [str(cell.value) for cell in book.active[2]] == [
        cell.removeprefix("'") for cell in WANTED[key][1]
    ]


def test_without_a_term_its_columns_are_empty_and_the_page_says_so(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    placement_term_set(user=bob, placement=placement, term=None)
    client = client_of(bob)
    assert table(take(client, placement, "?shape=banner"))[1] == [
        "'+470",
        "",
        "Alder",
        "101",
        "",
        "",
    ]
    page = Page(client.get(reverse("reports:rosters", args=[placement.pk])))
    assert page.has("paragraph", "No term is chosen")


def test_columns_of_the_survey_are_taken_and_always_marked(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    questions = [{"name": "Bed time?", "kind": "ordinal", "levels": ["=EARLY()", "Late"]}]
    Cohort.objects.filter(pk=placement.cohort_id).update(questions=questions)
    for k, student in enumerate(placement.cohort.students.order_by("number")):
        Student.objects.filter(pk=student.pk).update(answers=[0 if k == 0 else -1])
    client = client_of(bob)
    address = reverse("reports:rosters", args=[placement.pk])
    assert Page(client.get(address)).has("group", "Columns of the survey (2)", exactly=True)
    bedtime, share = _part("own:Bed time?"), _part("own:Share my e-mail")
    fields = {
        "name": "Own", "ids": "exact", "dates": "eu", "place-id": "3", f"place-{bedtime}": "1",
        f"heading-{bedtime}": "BED_TIME", f"place-{share}": "2", "place-starts_on": "4",
    }  # fmt: skip
    assert client.post(address, fields).status_code == 302
    shape = RosterShape.objects.get()
    rows = table(client.get(reverse("reports:roster-file", args=[placement.pk, shape.pk, "csv"])))
    assert rows[0] == ["BED_TIME", "Share my e-mail", "Student ID", "Start Date"]
    assert rows[1] == ["'=EARLY()", "no", "'+470", "20/08/2026"]
    assert rows[2][0] == ""
    other = placed_cohort(bob, "Next year")
    Cohort.objects.filter(pk=other.cohort_id).update(constraints=[])
    rows = table(client.get(reverse("reports:roster-file", args=[other.pk, shape.pk, "csv"])))
    assert rows[1] == ["", "", "'+470", ""], "a survey without the column"
    page = Page(client.get(f"{reverse('reports:rosters', args=[other.pk])}?roster={shape.pk}"))
    kept = page.field("Heading of Bed time?")
    assert kept.value == "BED_TIME", "a kept column can still be changed"


def test_a_layout_is_changed_and_kept(client_of: ClientOf, bob: User, placement: Placement) -> None:
    client = client_of(bob)
    address = reverse("reports:rosters", args=[placement.pk])
    page = Page(client.get(f"{address}?layout=banner"))
    assert page.has("heading", "Change and keep a roster")
    assert page.field("Heading of Term Code").value == "SLRRASG_TERM_CODE"
    assert page.field("Name").value == "Banner import"
    assert page.field("Dates").value == "month"
    assert client.get(f"{address}?layout=nonsense&roster=nonsense").status_code == 200
    wrong = client.post(address, {"name": "X", "place-id": "1", "dates": "roman"})
    assert wrong.status_code == 422
    assert not RosterShape.objects.exists()
    with pytest.raises(HousingError, match="how the roster writes dates"):
        shape_save(user=bob, name="X", columns=[("id", "")], is_exact=False, dates="roman")
    assert set(DATES) == {"iso", "us", "eu", "month"}


def test_names_leave_only_with_those_who_see_them(
    client_of: ClientOf, bob: User, carol: User, alice: User, placement: Placement
) -> None:
    shape = shape_save(
        user=bob, name="Names", columns=[("id", ""), ("name", ""), ("term", "")], is_exact=False
    )
    address = reverse("reports:roster-file", args=[placement.pk, shape.pk, "csv"])
    assert table(client_of(bob).get(address))[1] == ["'+470", "Anna Ash", "Autumn 2026"]
    assert client_of(alice).get(address).status_code == 403
    bob.organisation.names_for = "administrators"
    bob.organisation.save()
    AuditLine.objects.all().delete()
    refused = Page(client_of(bob).get(address, follow=True))
    assert "Anna" not in refused.source
    assert refused.has("alert", "does not show names to your role")
    assert not AuditLine.objects.filter(verb="exported").exists()
    assert "Anna Ash" in client_of(carol).get(address).content.decode()


# -- terms -----------------------------------------------------------------------------------------


def test_terms_are_added_changed_chosen_and_removed(
    client_of: ClientOf, bob: User, placement: Placement, term: Term
) -> None:
    client, address = client_of(bob), reverse("housing:terms")
    fields = {"name": " Spring  2027 ", "code": "", "starts_on": "2027-01-10",
              "ends_on": "2027-05-20"}  # fmt: skip
    assert client.post(address, fields).status_code == 302
    spring = Term.objects.get(name="Spring 2027")
    assert spring.system_name == "Spring 2027"
    one = reverse("housing:term", args=[spring.pk])
    assert Page(client.get(one)).field("First day").value == "2027-01-10"
    client.post(one, {**fields, "code": "202720"})
    spring.refresh_from_db()
    assert spring.system_name == "202720"
    chosen = reverse("housing:placement-term", args=[placement.pk])
    client.post(chosen, {"term": spring.pk})
    placement.refresh_from_db()
    assert placement.term == spring
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    assert page.has("paragraph", "For Spring 2027, 10 Jan 2027 to 20 May 2027.")
    client.post(reverse("housing:term-remove", args=[spring.pk]))
    assert Term.objects.filter(pk=spring.pk).exists(), "a placement is for it"
    with pytest.raises(HousingError, match="1 placement is for Spring 2027"):
        term_remove(user=bob, term=spring)
    client.post(reverse("housing:term-remove", args=[term.pk]))
    assert list(Term.objects.all()) == [spring]
    verbs = set(AuditLine.objects.values_list("verb", flat=True))
    assert {"added a term", "changed a term", "removed a term", "set the term"} <= verbs


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ends_on": "2027-01-10"}, "The last day has to be after the first day."),
        ({"ends_on": "2032-01-10"}, "A term lasts at most two years."),
        ({"name": "Autumn 2026"}, "There is a term called Autumn 2026 already."),
        ({"starts_on": "0001-01-01"}, "The year is before 1990."),
        ({"starts_on": "tomorrow"}, "Enter a valid date."),
        ({"name": ""}, "This field is required."),
    ],
)
def test_a_wrong_term_is_given_back_with_the_reason(
    client_of: ClientOf, bob: User, term: Term, change: dict[str, str], sentence: str
) -> None:
    fields = {"name": "Spring", "code": "typed", "starts_on": "2027-01-10",
              "ends_on": "2027-05-20"} | change  # fmt: skip
    page = Page(client_of(bob).post(reverse("housing:terms"), fields), status=422)
    labels = {"name": "Name", "starts_on": "First day", "ends_on": "Last day"}
    (changed,) = change
    assert sentence in page.field(labels[changed]).description
    assert page.field("Name in the student system").value == "typed"
    assert Term.objects.count() == 1


def test_terms_of_another_organisation_do_not_exist(
    client_of: ClientOf, bob: User, mallory: User, placement: Placement, term: Term
) -> None:
    theirs = term_save(user=mallory, term=None, name="Theirs", code="", **TERM)
    client = client_of(bob)
    assert "Theirs" not in Page(client.get(reverse("housing:terms"))).source
    assert client.get(reverse("housing:term", args=[theirs.pk])).status_code == 404
    assert client.post(reverse("housing:term-remove", args=[theirs.pk])).status_code == 404
    chosen = reverse("housing:placement-term", args=[placement.pk])
    assert client.post(chosen, {"term": theirs.pk}).status_code == 422
    with pytest.raises(HousingError, match="There is no such term"):
        placement_term_set(user=bob, placement=placement, term=theirs)
    placement.refresh_from_db()
    assert placement.term == term


def test_viewers_change_no_term(client_of: ClientOf, alice: User, placement: Placement) -> None:
    client = client_of(alice)
    assert client.get(reverse("housing:terms")).status_code == 403
    chosen = reverse("housing:placement-term", args=[placement.pk])
    assert client.post(chosen, {"term": ""}).status_code == 403
