"""The report by hall, and rosters in shapes that an organisation keeps."""

import csv
import io
from collections.abc import Callable

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement, Room
from webapp.housing.selectors.pages import SMALL
from webapp.reports.models import RosterShape
from webapp.reports.services import shape_save

ClientOf = Callable[[User], Client]


@pytest.fixture
def placement(bob: User) -> Placement:
    made = placed_cohort(bob)
    made.buildings.rooms.filter(name="104").update(state="offline", note="Water damage")
    return made


def at(placement: Placement, name: str, *more: object) -> str:
    return reverse(f"reports:{name}", args=[placement.pk, *more])


def test_the_report_says_who_lives_where_and_what_is_free(
    client_of: ClientOf, alice: User, bob: User, placement: Placement
) -> None:
    page = Page(client_of(alice).get(at(placement, "report")))
    facts = page.one("paragraph", "5 of 6 students placed in 5 open beds.")
    assert facts.says("Not published.")
    rooms = page.one("table", "Rooms of Alder")
    assert rooms.one("row", "1 101 ").has("cell", "S-1001, S-1002")
    assert rooms.one("row", "1 104 ").has("cell", "Offline: Water damage")
    assert at(placement, "report-file") not in page.source, "viewers take no file"
    assert client_of(alice).get(at(placement, "report-file")).status_code == 403
    data = client_of(bob).get(at(placement, "report-file")).content
    book = openpyxl.load_workbook(io.BytesIO(data))
    assert book.sheetnames == ["Halls", "Rooms"]
    assert [cell.value for cell in book["Halls"][2]][:6] == ["Alder", 4, 5, 5, 0, 2]
    assert book["Rooms"].cell(2, 8).value == "Anna Ash (S-1001), Ben Birch (S-1002)"
    assert AuditLine.objects.filter(verb="exported").count() == 1


def test_extra_beds_are_counted_apart_from_normal_ones(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    placement.buildings.rooms.filter(name="101").update(capacity=1, extra_beds=2)
    client = client_of(bob)
    report = Page(client.get(at(placement, "report")))
    assert report.has("paragraph", "placed in 4 open beds and 2 extra beds.")
    assert report.says("4 of 4 beds and 1 of 2 extra beds taken")
    assert report.one("row", "1 101 ").has("cell", "1 extra bed free")
    assert not report.says("5 of 4")
    floors = Page(client.get(reverse("housing:placement-floors", args=[placement.pk])))
    assert floors.says("4 of 4 beds and 1 of 2 extra beds taken")
    rooms = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    halls = rooms.one("navigation", "Halls, beds taken")
    assert halls.one("link", "Alder").says("5 of 4 + 2 extra")
    book = openpyxl.load_workbook(io.BytesIO(client.get(at(placement, "report-file")).content))
    heading = [cell.value for cell in book["Halls"][1]]
    sums = dict(zip(heading, (cell.value for cell in book["Halls"][2]), strict=True))
    assert (sums["Beds"], sums["Extra beds"], sums["Of them taken"], sums["Of them free"]) == (
        4, 2, 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["reports:report", "housing:placement-floors"])
def test_a_large_building_list_is_printed_one_hall_at_a_time(
    name: str, client_of: ClientOf, alice: User, placement: Placement
) -> None:
    """The sums are of every hall; the rooms are those of the hall that was chosen."""
    rooms = [
        Room(buildings=placement.buildings, hall=hall, floor="1", name=f"{hall[0]}{k}", capacity=1,
             position=1000 + k)
        for hall in ("Birch & Son", "Cedar") for k in range(SMALL)
    ]  # fmt: skip
    Room.objects.bulk_create(rooms)
    client, address = client_of(alice), reverse(name, args=[placement.pk])

    def shown(**query: str) -> set[str]:
        page = Page(client.get(address, query))
        assert page.field("Hall").one("option", "Cedar").value == "Cedar"
        return {room for room in ("101", "B7", "C7") if page.has("cell", room, exactly=True)}

    assert shown() == shown(hall="nowhere") == {"101"}
    assert shown(hall="Birch & Son") == {"B7"}
    assert shown(hall="Cedar") == {"C7"}
    assert shown(hall="all") == {"101", "B7", "C7"}
    if name == "reports:report":
        link = Page(client.get(address)).one("link", "Birch & Son")
        assert link.address == "?hall=Birch%20%26%20Son#rooms"


def test_a_placement_without_rooms_has_an_empty_report(
    client_of: ClientOf, alice: User, placement: Placement
) -> None:
    Placement.objects.update(revision=0)
    page = Page(client_of(alice).get(at(placement, "report")))
    assert page.has("paragraph", "This placement has no rooms yet.")


def test_a_roster_is_kept_for_every_placement_and_taken(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    client = client_of(bob)
    placement.buildings.rooms.update(hall="-Alder")
    fields = {
        "name": "StarRez", "place-space": "2", "heading-space": "Room Space Description",
        "place-id": "1", "heading-id": "EntryID", "ids": "exact",
    }  # fmt: skip
    page = Page(client.post(at(placement, "rosters"), fields, follow=True))
    row = page.one("row", "Remove StarRez")
    assert row.has("cell", "EntryID, Room Space Description", exactly=True)
    shape = RosterShape.objects.get()
    taken = client.get(at(placement, "roster-file", shape.pk, "csv")).content.decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(taken)))
    assert rows[:2] == [["EntryID", "Room Space Description"], ["'+470", "-Alder 101-1"]]
    assert len(rows) == 7
    other = placed_cohort(bob, "Next year")
    assert Page(client.get(at(other, "rosters"))).has("button", "Remove StarRez", exactly=True)
    assert client.get(at(other, "roster-file", shape.pk, "xlsx")).status_code == 200
    address = at(other, "roster-file", shape.pk, "xlsx").replace("xlsx", "pdf")
    assert client.get(address).status_code == 404
    client.post(at(placement, "rosters"), {**fields, "ids": "safe"})
    safe = client.get(at(placement, "roster-file", shape.pk, "csv")).content.decode("utf-8-sig")
    assert "'-Alder" in safe, "the same name changes what is kept"
    client.post(at(placement, "roster-remove", shape.pk))
    assert not RosterShape.objects.exists()


@pytest.mark.parametrize(
    ("name", "columns", "sentence"),
    [
        (" ", [("id", "")], "The roster needs a name."),
        ("R", [], "Choose at least one column of the roster."),
        ("R", [("secrets", "")], "Choose at least one column of the roster."),
        ("R", [("id", "Key"), ("bed", "key")], "Two columns have the same heading."),
    ],
)
def test_bad_shapes_get_one_sentence(
    bob: User, name: str, columns: list[tuple[str, str]], sentence: str
) -> None:
    with pytest.raises(HousingError) as error:
        shape_save(user=bob, name=name, columns=columns, is_exact=True)
    assert str(error.value) == sentence
    assert not RosterShape.objects.exists()


def test_a_bad_shape_is_given_back_by_the_page(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    fields = {"name": "R", "place-id": "²", "heading-id": "My id"}
    page = Page(client_of(bob).post(at(placement, "rosters"), fields), status=422)
    assert page.field("Heading of Student ID").value == "My id"
    assert page.field("Place of Student ID").value == "²"


def test_shapes_of_another_organisation_are_none(
    client_of: ClientOf, bob: User, mallory: User, placement: Placement
) -> None:
    shape = shape_save(user=mallory, name="Theirs", columns=[("id", "")], is_exact=True)
    client = client_of(bob)
    assert "Theirs" not in Page(client.get(at(placement, "rosters"))).source
    assert client.get(at(placement, "roster-file", shape.pk, "csv")).status_code == 404
    assert client.post(at(placement, "roster-remove", shape.pk)).status_code == 404
