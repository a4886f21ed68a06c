"""A small campus, and the cohort of the matching tests to be housed in it."""

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.webapp.matching.conftest import (  # noqa: F401 - fixtures used by the tests
    Past,
    cohort_of,
    learned,
    past,
    returning,
)
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Room


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:  # noqa: F811
    """The cohort to be housed, with ids as a housing system writes them."""
    cohort = cohort_of(bob, past, 2, "First-years", with_pairs=False)
    for student in cohort.students.all():
        student.original_id = student.original_id.removeprefix("=")
        student.save(update_fields=["original_id"])
    return cohort


def csv_file(text: str, name: str = "rooms.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode(), content_type="text/csv")


def reader_of(text: str):
    """Return filename, size and reader of a CSV, as services take them."""
    data = text.encode()
    return {"filename": "list.csv", "size": len(data), "read": io.BytesIO(data).read}


@pytest.fixture
def campus(bob: User) -> BuildingList:
    """Two halls: doubles for women and men, triples and singles for anybody; one closed room."""
    buildings = BuildingList.objects.create(
        organisation=bob.organisation, created_by=bob, name="Main campus"
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
