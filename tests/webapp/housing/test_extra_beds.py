"""Extra beds, several designations, the order of halls, changes of many rooms, floor lists."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.campus import RULES
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused
from webapp.accounts.models import NamesFor, User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import forget_directories
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement, Room, RoomsChange
from webapp.housing.rules import PlacementRules, broken_rule, order_in_words
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.many_rooms import rooms_change, rooms_change_undo
from webapp.housing.services.placements import placement_create
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]


def place(
    bob: User, cohort: Cohort, campus: BuildingList, model: LearnedModel, **rules: object
) -> Placement:
    made = placement_create(
        user=bob,
        name="P",
        cohort=cohort,
        buildings=campus,
        model=model,
        rules=PlacementRules(**{"designation": "Gender", "same": ("Gender",), **rules}),
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    made.refresh_from_db()
    return made


def test_extra_beds_are_used_last_and_the_pages_say_so(
    bob: User,
    client_of: ClientOf,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
) -> None:
    n = first_years.n_students
    campus.rooms.filter(hall="Elm").delete()
    women = first_years.students.filter(attributes__Gender="F").count()
    kept = campus.rooms.filter(designation="F")[: max(1, (women - 1) // 2)]
    campus.rooms.filter(designation="F").exclude(pk__in=[r.pk for r in kept]).delete()
    campus.rooms.update(extra_beds=1)
    spare = women - 2 * len(kept)
    placement = place(bob, first_years, campus, learned)
    cards = PlacementRooms(placement).cards()
    assert sum(len(card.people) for card in cards) == n
    taken = [card for card in cards if card.extra_taken]
    men = n - women
    assert sum(card.extra_taken for card in taken) == spare + max(0, men - 16)
    assert placement.figures["n_extra_beds"] == placement.figures["least_extra_beds"]
    address = reverse("housing:placement", args=[placement.pk])
    page = Page(client_of(bob).get(address, {"view": "table"}))
    rows = page.every("row", "Double (up to 3)")
    assert any(row.has("cell", "extra bed taken") for row in rows)
    assert any(row.has("cell", "1 extra bed free") for row in rows)


def test_the_later_hall_stays_empty_while_beds_are_free(
    bob: User,
    client_of: ClientOf,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
) -> None:
    placement = place(bob, first_years, campus, learned, order=(("Alder", 1), ("Elm", 2)))
    cards = PlacementRooms(placement).cards()
    women = first_years.students.filter(attributes__Gender="F").count()
    men = first_years.n_students - women
    elm = sum(len(card.people) for card in cards if card.room.hall == "Elm")
    assert elm == max(0, women - 16) + max(0, men - 16)
    client, address = client_of(bob), reverse("housing:placement-rules", args=[placement.pk])
    order = Page(client.get(address)).one("group", "Order in which the halls fill")
    assert order.field("Alder").value == "1"
    assert order.field("Alder, floor 2").value == ""
    refused = Page(client.post(address, {"order-0": "0", "mutual": "must"}), status=422)
    error = "Alder: a number from 1 to 99, or blank."
    assert error in refused.field("Alder").description
    client.post(address, {"order-0": "2", "order-2": "1", "mutual": "must"})
    run_waiting()
    waiting = placement.versions.order_by("-number").first()
    assert [tuple(x) for x in waiting.rules["order"]] == [("Alder", 2), ("Alder|2", 1)]
    assert order_in_words((("Alder", 2), ("Alder|2", 1))) == "Alder floor 2, then Alder"


def test_a_room_takes_students_whom_every_designation_allows(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> None:
    students = list(first_years.students.all())
    for student in students:
        year = "1" if student.number % 3 else "2"
        student.attributes = {**student.attributes, "Class year": year}
        student.save(update_fields=["attributes"])
    first_years.constraints = [*first_years.constraints, "Class year"]
    first_years.save(update_fields=["constraints"])
    Cohort.objects.filter(pk=first_years.pk).update(revision=first_years.revision + 1)
    campus.rooms.filter(designation="F").update(designation="F; class YEAR=1")
    campus.rooms.filter(hall="Elm").update(designation="Theme=Quiet")
    placement = place(bob, Cohort.objects.get(pk=first_years.pk), campus, learned)
    rules = PlacementRules.from_json(placement.rules)
    for room in campus.rooms.all():
        living = [p.student for p in room.places.filter(placement=placement)]
        assert not broken_rule(room, living, rules)
        if room.hall == "Elm":
            assert not living, "no student has the theme"
        elif room.designation.startswith("F"):
            assert {s.attributes["Class year"] for s in living} <= {"1"}
    room = campus.rooms.filter(designation__startswith="F").first()
    second = next(
        s for s in students if s.attributes["Class year"] == "2" and s.attributes["Gender"] == "F"
    )
    assert "is for class year “1”" in broken_rule(room, [second], rules)


def test_many_rooms_change_after_a_question_and_back_by_undo(
    alice: User, bob: User, client_of: ClientOf, placement: Placement, campus: BuildingList
) -> None:
    client = client_of(bob)
    address = reverse("housing:rooms-edit", args=[campus.pk])
    page = Page(client.get(address, {"hall": "Alder", "floor": "1"}))
    assert page.says("1. Which rooms 8 rooms match")
    assert len(page.every("checkbox", "Change Alder ")) == 8
    sent = {"change": ["max_capacity", "note"], "max_capacity": "3", "note": "Bunk bed"}
    asked = Page(client.post(f"{address}?hall=Alder&floor=1", sent))
    assert asked.has("heading", "Change 8 rooms?", exactly=True)
    assert not campus.rooms.filter(extra_beds=1).exists(), "nothing changes before it is confirmed"
    client.post(f"{address}?hall=Alder&floor=1", {**sent, "confirmed": "8 0"})
    assert campus.rooms.filter(extra_beds=1, note="Bunk bed").count() == 8
    change = RoomsChange.objects.get()
    assert AuditLine.objects.filter(verb="changed rooms").count() == 1
    undo = reverse("housing:rooms-undo", args=[campus.pk, change.pk])
    history = reverse("housing:history", args=[placement.pk])
    assert undo in [form.address for form in Page(client.get(history)).every("form")]
    assert undo not in Page(client_of(alice).get(history)).source, "viewers undo nothing"
    client.post(reverse("housing:rooms-undo", args=[campus.pk, change.pk]))
    assert not campus.rooms.filter(extra_beds=1).exists()
    with pytest.raises(HousingError, match="undone already"):
        rooms_change_undo(user=bob, change=change)


def test_only_ticked_rooms_change_and_drafts_lose_beds_by_name(
    bob: User, client_of: ClientOf, placement: Placement, campus: BuildingList
) -> None:
    room = next(room for room in campus.rooms.all() if room.places.count() == 2)
    living = 2
    client, address = client_of(bob), reverse("housing:rooms-edit", args=[campus.pk])
    sent = {"rooms": [room.pk], "change": ["state"], "state": "offline"}
    asked = Page(client.post(address, sent))
    assert asked.has("heading", "Change 1 room?", exactly=True)
    assert asked.has("paragraph", f"{living} students of drafts need another room then.")
    client.post(address, {**sent, "confirmed": f"1 {living}"})
    assert campus.rooms.filter(state="offline").count() == 2
    assert not placement.places.filter(room=room).exists()
    assert "need another room" in placement.events.filter(kind="closed").first().sentence


def test_a_published_bed_stops_a_change_of_many_rooms(
    bob: User, placement: Placement, campus: BuildingList
) -> None:
    from django.utils import timezone

    Placement.objects.filter(pk=placement.pk).update(published_at=timezone.now())
    keys = [room.pk for room in campus.rooms.all()]
    before = list(campus.rooms.values())
    with pytest.raises(HousingError, match="which is published"):
        rooms_change(user=bob, buildings=campus, rooms=keys, values={"designation": "X"})
    assert list(campus.rooms.values()) == before
    assert not RoomsChange.objects.exists()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "Tick what to change."),
        ({"change": ["name"], "name": "x"}, "There is no such value of a room."),
        ({"change": ["capacity"]}, "A room has 1 to 8 beds."),
        ({"change": ["capacity"], "capacity": "9"}, "less than or equal to 8"),
        ({"change": ["max_capacity"], "max_capacity": "1"}, "cannot have 1 with extra"),
        ({"change": ["meets"], "meets": "x" * 300}, "At most 20 needs"),
        (
            {"change": ["note"], "note": "a", "rooms": ["²", "-1", "99999999999999"]},
            "The page was out of date. Load it again.",
        ),
        ({"change": ["note"], "note": "a", "rooms": ["999999999"]}, "No room matches"),
    ],
)
def test_wrong_values_for_many_rooms_are_refused_and_kept(
    bob: User, client_of: ClientOf, campus: BuildingList, sent: dict, words: str
) -> None:
    before = list(campus.rooms.values())
    answer = client_of(bob).post(reverse("housing:rooms-edit", args=[campus.pk]), sent)
    assert Page(answer, status=422).says(words)
    assert list(campus.rooms.values()) == before


def test_ticked_rooms_stay_ticked_on_a_refused_page(
    bob: User, client_of: ClientOf, campus: BuildingList
) -> None:
    first, second = campus.rooms.all()[:2]
    sent = {"rooms": [second.pk], "change": ["capacity"], "capacity": "9"}
    address = reverse("housing:rooms-edit", args=[campus.pk])
    page = Page(client_of(bob).post(address, sent), status=422)
    assert page.field(f"Change {second.label}").is_checked
    assert not page.field(f"Change {first.label}").is_checked


def test_a_change_that_somebody_changed_again_is_not_undone(
    bob: User, campus: BuildingList
) -> None:
    keys = [room.pk for room in campus.rooms.all()]
    change, _ = rooms_change(user=bob, buildings=campus, rooms=keys, values={"note": "x"})
    Room.objects.filter(pk=keys[0]).update(note="y")
    with pytest.raises(HousingError, match="was changed again since"):
        rooms_change_undo(user=bob, change=change)
    assert campus.rooms.filter(note="x").count() == len(keys) - 1


def test_a_room_cannot_have_fewer_beds_with_extra_beds(
    bob: User, client_of: ClientOf, campus: BuildingList
) -> None:
    address = reverse("housing:room", args=[campus.pk, 0])
    sent = {"hall": "Oak", "name": "1", "capacity": "3", "max_capacity": "2", "state": "open"}
    refused = client_of(bob).post(address, sent)
    check_refused(refused, sent, field="max_capacity", error="at least its 3 beds")
    client_of(bob).post(address, {**sent, "max_capacity": "4"})
    assert campus.rooms.get(hall="Oak").max_capacity == 4


def test_floor_lists_show_names_by_right_and_the_file_one_line_a_bed(
    alice: User, bob: User, client_of: ClientOf, placement: Placement
) -> None:
    number = placement.places.with_bed().first().number
    placement.cohort.students.filter(number=number).update(name="Anna Ash")
    Cohort.objects.filter(pk=placement.cohort_id).update(revision=placement.cohort.revision + 1)
    forget_directories()
    address = reverse("housing:placement-floors", args=[placement.pk])
    page = Page(client_of(bob).get(address))
    assert page.has("table", "Rooms of Alder, floor 1")
    assert page.has("cell", "Anna Ash")
    assert "Anna Ash" not in Page(client_of(alice).get(address)).source
    file = reverse("housing:placement-floors-file", args=[placement.pk, "csv"])
    assert client_of(alice).get(file).status_code == 403
    rows = client_of(bob).get(file).content.decode("utf-8-sig").splitlines()
    assert rows[0] == "Building,Floor,Room,Bed,Student,Name,First day,Last day,Note"
    assert any(f"S-{number},Anna Ash" in row for row in rows)
    bob.organisation.names_for = NamesFor.NOBODY
    bob.organisation.save()
    assert "Anna Ash" not in client_of(bob).get(file).content.decode()
    assert RULES.designation == "Gender"
