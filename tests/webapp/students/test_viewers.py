"""Viewers never learn who requested whom: every page and answer is the same whoever asked whom."""

import re
from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.programs import Program
from tests.webapp.factories.students import NAMES
from webapp.accounts.models import Role, User
from webapp.api.openapi import PREFIX
from webapp.api.registry import endpoints
from webapp.api.services import token_create
from webapp.cohorts.models import Student
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.housing.models import Placement, PlacementEvent, Room, RoommateRequest

# What differs from one answer to the next, whoever asks.
CHANGING = re.compile(r'csrf\w*" value="[^"]+"|nonce="[^"]+"|"X-CSRFToken": "[^"]+"')


@pytest.fixture
def seven(bob: User, placement: Placement) -> list[Student]:
    """Seven students; two share Baker 12, two late ones Baker 14, and the last one waits."""
    late = latecomers_add(
        user=bob, cohort=placement.cohort, rows=[{"id": "N05"}, {"id": "N06"}], source="late.csv"
    )
    students = list(placement.cohort.students.order_by("number"))
    room = Room.objects.create(
        buildings=placement.buildings, hall="Baker", name="14", capacity=2, position=5
    )
    placement.places.filter(number__in=late.numbers).delete()
    for bed, student in enumerate(students[4:], start=1):
        placement.places.create(student=student, number=student.number, room=room, bed=bed)
    PlacementEvent.objects.create(
        placement=placement, user=bob, kind="withdrew", sentence=f"{students[3]} withdrew.",
        before=[[students[3].number, None, None, False, False]], after=[],
    )  # fmt: skip
    latecomers_add(user=bob, cohort=placement.cohort, rows=[{"id": "N07"}], source="later.csv")
    return list(placement.cohort.students.order_by("number"))


def ask(students: list[Student], pairs: tuple[tuple[int, int], ...]) -> None:
    """Store requests instead of all others; a request of a late arrival forbids an undo."""
    cohort = students[0].cohort
    RoommateRequest.objects.filter(cohort=cohort).delete()
    for asker, target in pairs:
        RoommateRequest.objects.create(
            cohort=cohort, student=students[asker], target=students[target], source="File",
            created_at=timezone.now(),
        )  # fmt: skip


def clash_of(students: list[Student], a: int, b: int) -> dict[str, object]:
    one, two = students[a], students[b]
    return {
        "sentence": f"{one} and {two} asked to live together, but never may.",
        "requests": [[one.number, two.number]], "locks": [], "nevers": [],
    }  # fmt: skip


WORLDS = (((0, 1), (1, 0), (3, 0)), ((4, 5), (5, 4), (3, 6)))


def pages(placement: Placement) -> list[str]:
    cohort, rooms = placement.cohort, list(placement.buildings.rooms.all())
    placed = reverse("housing:placement", args=[placement.pk])
    found = [f"{placed}?view={v}&hall=all" for v in ("rooms", "table", "students")]
    found += [f"{placed}?look={look}" for look in ("missed", "pulled", "undecided", "free")]
    found += [f"{placed}?room={room.pk}" for room in rooms]
    found += [f"{placed}?room={rooms[0].pk}&pair=S-1001-S-1002", f"{placed}?q=S-1001"]
    for name in ("housing:history", "reports:report", "reports:checks"):
        found.append(reverse(name, args=[placement.pk]))
    found.append(reverse("housing:scenarios", args=[cohort.pk]))
    found.append(reverse("housing:placements"))
    tabs = ("students", "pairs", "questions", "")
    found += [f"{reverse('cohorts:cohort', args=[cohort.pk])}?tab={tab}" for tab in tabs]
    for student in cohort.students.all():
        found.append(reverse("students:student", args=[cohort.pk, student.number]))
        found.append(f"{reverse('common:search')}?q={student.label}&stay=1")
    return [*found, reverse("common:home"), reverse("jobs:list"), reverse("common:rail")]


def answers_of_program(placement: Placement) -> list[str]:
    """Return the addresses of the API that a viewer may read about a placement and its cohort."""
    room = placement.buildings.rooms.all()[0]
    known = {
        "placement_id": placement.pk, "cohort_id": placement.cohort_id, "room_id": room.pk,
        "buildings_id": placement.buildings_id, "building_list_id": placement.buildings_id,
        "model_id": placement.model_id, "file_format": "csv",
    }  # fmt: skip
    found = []
    for entry in endpoints():
        if entry.method == "GET" and all(name in known for name in entry.path_parameters):
            found.append(entry.path.format(**known))
    return found


def seen(client_of: Callable, user: User, placement: Placement) -> dict[str, str]:
    """Return everything that a person reads, without what changes from answer to answer."""
    client, texts = client_of(user), {}
    for address in pages(placement):
        response = client.get(address)
        assert response.status_code == 200, address
        texts[address] = CHANGING.sub("", response.content.decode())
    _, secret = token_create(user=user, name=f"look {timezone.now()}", may_change=False, days=1)
    program = Program(secret)
    for address in answers_of_program(placement):
        response = program.get(address)
        assert response.status_code in (200, 403, 404), address
        texts[f"{PREFIX}{address}"] = response.content.decode()
    return texts


def test_who_asked_whom_changes_nothing_that_a_viewer_reads(
    alice: User, client_of: Callable, placement: Placement, seven: list[Student]
) -> None:
    """Two years that differ only in who asked whom, and in what cannot be kept because of it."""
    read = []
    for world in WORLDS:
        ask(seven, world)
        a, b = world[2]
        placement.clashes = [clash_of(seven, a, b)]
        placement.figures = {
            "conflicts": [clash_of(seven, a, b)["sentence"]], "left_out": [clash_of(seven, a, b)],
        }  # fmt: skip
        placement.save(update_fields=["clashes", "figures"])
        read.append(seen(client_of, alice, placement))
    assert len(read[0]) > 45
    differing = [address for address in read[0] if read[0][address] != read[1][address]]
    assert not differing
    for address, text in read[0].items():
        assert not [name for name in NAMES if name in text], address


def test_staff_read_what_viewers_do_not(
    bob: User, client_of: Callable, placement: Placement, seven: list[Student]
) -> None:
    """The comparison can fail: for staff the same pages differ."""
    read = []
    for world in WORLDS:
        ask(seven, world)
        read.append(seen(client_of, bob, placement))
    differing = [address for address in read[0] if read[0][address] != read[1][address]]
    assert len(differing) > 8
    history = reverse("housing:history", args=[placement.pk])
    assert "asked for" in read[1][history]


def test_exports_of_a_viewer_are_refused(
    alice: User, mallory: User, client_of: Callable, placement: Placement
) -> None:
    for name, args in (
        ("housing:placement-export", ["csv"]), ("housing:placement-export", ["xlsx"]),
        ("reports:report-file", []), ("housing:changes-moves", ["csv"]),
    ):  # fmt: skip
        address = reverse(name, args=[placement.pk, *args])
        assert client_of(alice).get(address).status_code == 403, name
        assert client_of(mallory).get(address).status_code == 404, name
    for entry in endpoints():
        if entry.media_type and "placement_id" in entry.path_parameters:
            assert entry.role in (Role.STAFF, Role.ADMINISTRATOR), entry.path
