"""One impossible request costs only the people whom it concerns; everybody else is placed."""

from collections.abc import Callable

import pytest
from django.db.models import Count, F, Q
from django.test import Client

from tests.webapp.factories.campus import RULES, check, reader_of
from tests.webapp.factories.programs import Program
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services.decisions import Move, places_move
from webapp.housing.services.placements import placement_create
from webapp.housing.services.requests import requests_import
from webapp.matching.models import ForbiddenPair, LearnedModel

ClientOf = Callable[[User], Client]


@pytest.fixture
def contradicted(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """A placement in which a woman and a man asked for each other, and two women as well."""
    women = list(first_years.students.filter(attributes__Gender="F")[:3])
    men = list(first_years.students.filter(attributes__Gender="M")[:1])
    names = [(women[0], men[0]), (women[1], women[2])]
    rows = [
        f"{a.original_id},{b.original_id}" for one, other in names
        for a, b in ((one, other), (other, one))
    ]  # fmt: skip
    text = "\n".join(["student,wants", *rows])
    requests_import(user=bob, cohort=first_years, **reader_of(text + "\n"))
    made = placement_create(
        user=bob, name="P", cohort=first_years, buildings=campus, model=learned, rules=RULES
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    assert "1 request could not be honoured" in job.result["sentence"]
    return Placement.objects.get(pk=made.pk)


def pair_of(placement: Placement) -> list[int]:
    (entry,) = placement.figures["left_out"]
    ((a, b),) = entry["requests"]
    return [a, b]


def test_a_mutual_request_against_a_rule_leaves_the_rest_placed(
    bob: User, contradicted: Placement, client_of: ClientOf
) -> None:
    check(contradicted)
    rooms = dict(contradicted.places.values_list("number", "room_id"))
    assert None not in rooms.values(), "everybody has a bed, the two who asked in vain as well"
    a, b = pair_of(contradicted)
    assert rooms[a] != rooms[b]
    women = contradicted.cohort.students.filter(attributes__Gender="F")
    c, d = (student.number for student in women[1:3])
    assert rooms[c] == rooms[d], "the request that no rule forbids is honoured"
    page = Page(client_of(bob).get(f"/placements/{contradicted.pk}/"))
    notice = page.one("region", "Requests that could not be honoured")
    assert notice.has("paragraph", "1 request could not be honoured")
    assert notice.has("listitem", f"The request of S-{a} for S-{b} was not applied.")


def test_programs_are_told(
    bob: User,
    contradicted: Placement,
    program_of: Callable[..., Program],
) -> None:
    said = program_of(bob).get(f"/placements/{contradicted.pk}").json()
    a, b = pair_of(contradicted)
    assert [entry["requests"] for entry in said["left_out"]] == [[[f"S-{a}", f"S-{b}"]]]
    assert said["clashes"] == []


def test_the_two_can_be_moved_and_the_request_left_out_for_good(
    bob: User, contradicted: Placement, client_of: ClientOf
) -> None:
    a, b = pair_of(contradicted)
    woman = contradicted.cohort.students.get(number__in=(a, b), attributes__Gender="F")
    rooms = contradicted.buildings.rooms.filter(designation="F").exclude(places__student=woman)
    in_room = Count("places", filter=Q(places__placement=contradicted))
    free = rooms.annotate(n=in_room).filter(n__lt=F("capacity")).first()
    assert free is not None
    move = Move(woman.number, free.pk)
    places_move(
        user=bob,
        placement=contradicted,
        moves=[move],
        version=contradicted.version,
        sentence="moved",
    )
    client = client_of(bob)
    client.post(f"/placements/{contradicted.pk}/solve/", {"clash": "0", "leave": "requests"})
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    version = contradicted.versions.order_by("-number").first()
    assert version is not None
    assert version.figures["left_out"] == []


def test_a_pair_never_to_share_is_offered_to_share(
    bob: User, contradicted: Placement, client_of: ClientOf
) -> None:
    women = contradicted.cohort.students.filter(attributes__Gender="F")
    c, d = women[1:3]
    ForbiddenPair.objects.create(cohort=contradicted.cohort, first=c, second=d)
    client = client_of(bob)
    client.post(f"/placements/{contradicted.pk}/compute/")
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    page = Page(client.get(f"/placements/{contradicted.pk}/"))
    notice = page.one("region", "Requests that could not be honoured")
    assert notice.has("paragraph", "2 requests could not be honoured")
    assert notice.has("button", "Let this pair share a room")
    client.post(f"/placements/{contradicted.pk}/solve/", {"clash": "1", "leave": "nevers"})
    client.post(f"/placements/{contradicted.pk}/solve/", {"clash": "0", "leave": "nevers"})
    assert not ForbiddenPair.objects.exists()
