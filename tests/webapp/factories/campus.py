"""A small campus, its rules, and checks of the placements in it."""

import io
from collections import Counter

from django.core.files.uploadedfile import SimpleUploadedFile

from tests.webapp.factories.university import run_waiting
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement, Room
from webapp.housing.rules import PlacementRules, broken_rule
from webapp.housing.services.placements import placement_create
from webapp.matching.models import LearnedModel

RULES = PlacementRules(designation="Gender", same=("Gender",))


def csv_file(text: str, name: str = "rooms.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode(), content_type="text/csv")


def reader_of(text: str):
    """Return filename, size and reader of a CSV, as services take them."""
    data = text.encode()
    return {"filename": "list.csv", "size": len(data), "read": io.BytesIO(data).read}


def make_campus(user: User) -> BuildingList:
    """Make doubles for women and men, triples and singles for anybody, and one closed room."""
    buildings = BuildingList.objects.create(
        organisation=user.organisation, created_by=user, name="Main campus"
    )
    rooms = [("Alder", "1", f"1{k:02d}", 2, "F") for k in range(8)]
    rooms += [("Alder", "2", f"2{k:02d}", 2, "M") for k in range(8)]
    rooms += [("Elm", "", f"T{k}", 3, "") for k in range(2)]
    rooms += [("Elm", "", f"S{k}", 1, "") for k in range(2)]
    Room.objects.bulk_create(
        Room(
            buildings=buildings,
            hall=hall,
            floor=floor,
            name=name,
            capacity=capacity,
            designation=designation,
            position=position,
        )
        for position, (hall, floor, name, capacity, designation) in enumerate(rooms)
    )
    Room.objects.create(
        buildings=buildings,
        hall="Elm",
        name="D9",
        capacity=2,
        state="offline",
        note="Water damage",
        position=99,
    )
    return buildings


def place_in_rooms(
    user: User, cohort: Cohort, buildings: BuildingList, model: LearnedModel
) -> Placement:
    """Place a cohort in rooms by the rules and compute the placement."""
    made = placement_create(
        user=user, name="P", cohort=cohort, buildings=buildings, model=model, rules=RULES
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    made.refresh_from_db()
    return made


def check(placement: Placement) -> None:
    """No bed holds two, nobody has two beds, and no rule is broken."""
    beds = Counter(placement.places.filter(room__isnull=False).values_list("room", "bed"))
    assert max(beds.values()) == 1
    rules = PlacementRules.from_json(placement.rules)
    for room in placement.buildings.rooms.all():
        people = [p.student for p in room.places.filter(placement=placement)]
        assert broken_rule(room, people, rules) == ""


def two_rooms(placement: Placement, hall: str = "Alder") -> tuple[list[int], list[int]]:
    """Return the people of two full rooms for the same gender."""
    rooms: dict[int, list[int]] = {}
    for number, room in placement.places.filter(
        room__hall=hall, student__attributes__Gender="F"
    ).values_list("number", "room"):
        rooms.setdefault(room, []).append(number)
    full = [people for people in rooms.values() if len(people) == 2]
    return full[0], full[1]
