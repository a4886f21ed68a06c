"""Suites: import and editing, rules across the rooms of a suite, and placing."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.campus import RULES, reader_of
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.exports import floors_export, rooms_export, roster_export
from webapp.housing.exports import layout_of_columns as layout
from webapp.housing.models import BuildingList, Placement, Room, RoommateRequest
from webapp.housing.rules import PlacementRules, apart_in_suite
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.rooms import swap_offers
from webapp.housing.selectors.suites import suite_mates
from webapp.housing.selectors.togetherness import asked_pairs
from webapp.housing.services.buildings import (
    building_draft_create,
    building_draft_import,
    room_save,
)
from webapp.housing.services.changes import change_keep, change_propose
from webapp.housing.services.checks import forbidden_numbers
from webapp.housing.services.decisions import Move, places_move
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.many_rooms import rooms_change, rooms_change_undo
from webapp.housing.services.placements import placement_create, rules_change
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.versions import version_use
from webapp.matching.models import ForbiddenPair, LearnedModel

ClientOf = Callable[[User], Client]
FILE = """Building,Suite,Room,Capacity
Alder,201,A,2
Alder,201,B,1
Alder,202,A,2
Alder,,210,2
Birch,Apartment 4,4a,1
"""


def test_a_file_with_suites_becomes_rooms_in_suites(bob: User, client_of: ClientOf) -> None:
    draft = building_draft_create(user=bob, **reader_of(FILE))
    assert draft.roles == ["hall", "suite", "room", "capacity"]
    page = Page(client_of(bob).get(reverse("housing:building-draft", args=[draft.pk])))
    assert len(page.every("row", "suite 201")) == 2
    assert page.one("complementary", "Problems and halls").says("3 suites")
    made = building_draft_import(user=bob, draft=draft, name="Campus")
    rooms = [(room.name, room.suite, room.place_in_words) for room in made.rooms.all()]
    assert rooms == [
        ("201-A", "201", "Suite 201, room 201-A"),
        ("B", "201", "Suite 201, room B"),
        ("202-A", "202", "Suite 202, room 202-A"),
        ("210", "", "210"),
        ("4a", "Apartment 4", "Apartment 4, room 4a"),
    ]
    page = Page(client_of(bob).get(reverse("housing:buildings", args=[made.pk])))
    assert len(page.every("row", "Suite 201")) == 2
    assert page.one("row", "Apartment 4").says("4a")


def test_a_suite_is_edited_for_one_room_and_for_many(bob: User, campus: BuildingList) -> None:
    room = campus.rooms.get(name="T0")
    values = {"hall": "Elm", "floor": "", "name": "T0", "capacity": 3, "designation": ""}
    values |= {"meets": [], "state": "open", "note": ""}
    room_save(user=bob, buildings=campus, room=room, values={**values, "suite": "7"})
    room.refresh_from_db()
    assert room.suite == "7"
    room_save(user=bob, buildings=campus, room=room, values=values)  # as an old client of the API
    room.refresh_from_db()
    assert room.suite == "7"
    chosen = [r.pk for r in campus.rooms.filter(hall="Alder", floor="1")]
    change, _ = rooms_change(user=bob, buildings=campus, rooms=chosen, values={"suite": "East"})
    assert "suite" in change.sentence
    assert campus.rooms.filter(suite="East").count() == len(chosen)
    rooms_change_undo(user=bob, change=change)
    assert not campus.rooms.filter(suite="East").exists()


@pytest.fixture
def suites(campus: BuildingList) -> BuildingList:
    """The campus as nine suites for anybody: doubles of Alder by four, the rooms of Elm by two."""
    for k, room in enumerate(campus.rooms.filter(hall="Alder")):
        room.suite, room.designation = f"{k // 4 + 1}", ""
        room.save()
    campus.rooms.filter(name__in=("T0", "S0")).update(suite="a")
    campus.rooms.filter(name__in=("T1", "S1")).update(suite="b")
    return campus


def place(
    bob: User, cohort: Cohort, campus: BuildingList, model: LearnedModel, **rules: object
) -> Placement:
    made = placement_create(
        user=bob,
        name="P",
        cohort=cohort,
        buildings=campus,
        model=model,
        rules=PlacementRules(**{"same": ("Gender",), **rules}),
        seed=3,
        seconds=10,
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    made.refresh_from_db()
    return made


def broken(placement: Placement) -> list[str]:
    """Return the rules that the suites of a placement break, pair by pair."""
    rules, forbidden = PlacementRules.from_json(placement.rules), forbidden_numbers(placement)
    rooms = list(placement.buildings.rooms.all())
    beside = suite_mates(placement, rooms, {})
    found = []
    for room in rooms:
        for one in placement.places.filter(room=room):
            for other in beside.get(room.pk, ()):
                found.append(apart_in_suite(room, one.student, other, rules, forbidden))
    return [sentence for sentence in found if sentence]


def test_suites_keep_the_rule_of_one_gender_and_everybody_has_a_bed(
    bob: User,
    client_of: ClientOf,
    first_years: Cohort,
    suites: BuildingList,
    learned: LearnedModel,
) -> None:
    numbers = list(first_years.students.filter(attributes__Gender="F").values_list("pk", flat=True))
    ForbiddenPair.objects.create(
        cohort=first_years, first_id=numbers[0], second_id=numbers[1], created_by="bob"
    )
    placement = place(bob, first_years, suites, learned)
    assert not broken(placement)
    assert placement.figures["n_suites"] == 6
    assert placement.figures["n_left_by_suites"] == 0
    assert placement.figures["weight"] <= placement.figures["upper_bound"] + 1e-9
    assert placement.places.without_bed().count() <= 1  # an odd gender may not fill its suites
    client = client_of(bob)
    address = reverse("housing:placement", args=[placement.pk])
    page = Page(client.get(address))
    assert page.has("paragraph", "The proof is about rooms")
    assert page.has("article", "Suite 1")
    rules = Page(client.get(reverse("housing:placement-rules", args=[placement.pk])))
    assert rules.field("How much suite mates count")

    # By hand: a man cannot join a suite of women, nor one of a pair to keep apart the other's.
    rooms = PlacementRooms(placement)
    attributes = dict(first_years.students.values_list("number", "attributes"))
    women = next(
        card
        for card in rooms.cards()
        if card.room.suite
        and card.people
        and attributes[card.people[0].number]["Gender"] == "F"
        and rooms.beside(card.room.pk)
    )
    emptied = places_move(
        user=bob,
        placement=placement,
        moves=[Move(person.number, None) for person in women.people],
        version=placement.version,
        sentence="Moved out.",
    )
    placement.refresh_from_db()
    man = next(n for n, own in attributes.items() if own["Gender"] == "M")
    with pytest.raises(HousingError, match="which the people of Suite"):
        places_move(
            user=bob,
            placement=placement,
            moves=[Move(man, women.room.pk)],
            version=placement.version,
            sentence="S moved.",
        )
    beside = PlacementRooms(placement).beside(women.room.pk)
    mate = placement.places.get(number=beside[0]).student
    mover = women.people[0].number
    never = ForbiddenPair.objects.create(
        cohort=first_years,
        first=mate,
        second=placement.places.get(number=mover).student,
        created_by="bob",
    )
    with pytest.raises(HousingError, match="never to share a room or a suite"):
        places_move(
            user=bob,
            placement=placement,
            moves=[Move(mover, women.room.pk)],
            version=placement.version,
            sentence="S moved.",
        )
    never.delete()
    placement.refresh_from_db()
    decision_undo(user=bob, placement=placement, event=emptied)
    assert not broken(placement)
    assert placement.places.get(number=mover).room_id == women.room.pk

    # A pair to keep apart that is added later is a conflict of the drawer, and stops publishing.
    never = ForbiddenPair.objects.create(
        cohort=first_years,
        first=mate,
        second=placement.places.get(number=mover).student,
        created_by="bob",
    )
    placement.refresh_from_db()
    drawer = Page(client.get(address, {"room": women.room.pk})).one("complementary", "Room")
    assert drawer.has("paragraph", "never to share a room or a suite")
    with pytest.raises(HousingError, match="Move one of them first"):
        placement_publish(user=bob, placement=placement, version=placement.version)
    never.delete()

    # Exports name the suite.
    data, _ = rooms_export(user=bob, placement=placement, file_format="csv", exact=False)
    assert data.decode("utf-8-sig").splitlines()[0].startswith("Building,Floor,Suite,Room")
    data, _ = floors_export(user=bob, placement=placement, file_format="csv")
    assert data.decode("utf-8-sig").splitlines()[0].startswith("Building,Floor,Suite,Room,Bed")
    data, _ = roster_export(
        user=bob,
        placement=placement,
        layout=layout(["id", "suite", "place"]),
        file_format="csv",
        exact=False,
    )
    assert "Suite 1, room" in BytesIO(data).read().decode("utf-8-sig")
    floors = Page(client.get(reverse("housing:placement-floors", args=[placement.pk])))
    assert floors.has("cell", "Suite 1, room ")


def total_with_suites(placement: Placement) -> float:
    """Return the score of all rooms, and of suite mates at their weight, summed over all pairs."""
    scores = Scores(placement)
    places = list(placement.places.with_bed().select_related("room"))
    numbers = [place.number for place in places]
    table = scores.between(numbers, numbers)
    weight = PlacementRules.from_json(placement.rules).suite
    total = 0.0
    for a, one in enumerate(places):
        roommates = [table[a, b] for b, two in enumerate(places) if a != b and two.room == one.room]
        mates = [
            table[a, b]
            for b, two in enumerate(places)
            if two.room != one.room and one.room.suite and two.room.suite_key == one.room.suite_key
        ]
        for values, counts in ((roommates, 1.0), (mates, weight)):
            total += counts * sum(values) / max(len(values), 1) / 2
    return total


def test_costs_of_moves_and_swaps_count_suite_mates(
    bob: User,
    client_of: ClientOf,
    first_years: Cohort,
    suites: BuildingList,
    learned: LearnedModel,
) -> None:
    """The costs that pages show are those of the acts, computed again from all pairs."""
    placement = place(bob, first_years, suites, learned, suite=2.0)
    client = client_of(bob)
    rooms = PlacementRooms(placement)
    cards = [card for card in rooms.cards() if len(card.people) == 2 and card.room.suite]
    acts: list[tuple[list[Move], float]] = []
    for card in cards[:2]:
        number = card.people[0].number
        offers = swap_offers(rooms, Scores(placement), card, number)
        assert [offer.total for offer in offers] == sorted((o.total for o in offers), reverse=True)
        acts += [
            ([Move(number, one.room.pk), Move(one.number, card.room.pk)], one.total)
            for one in offers
        ]
        assert any(offer.suites for offer in offers)
        drawer = Page(client.get(f"/placements/{placement.pk}/", {"room": card.room.pk}))
        assert drawer.has("columnheader", "suites", exactly=True)
        choices = choices_of(rooms, number)
        acts += [([Move(number, one.card.room.pk)], one.total) for one in choices.rooms[:2]]
    near = next(card for card in cards if rooms.beside(card.room.pk))
    pair = (near.people[0].number, rooms.beside(near.room.pk)[0])
    (asked,) = asked_pairs(rooms, [pair])
    assert asked.suite == f"{near.room.hall}, {near.room.suite_in_words}"
    ask = RoommateRequest(cohort=first_years, written="")
    ask.student, ask.target = (first_years.students.get(number=one) for one in pair)
    ask.save()
    page = Page(client.get(f"/cohorts/{first_years.pk}/requests/?show=one-sided"))
    assert page.has("listitem", f"Suite mates in {asked.suite}")
    assert asked.way is not None
    moves = [Move(asked.way.mover, asked.way.room.pk)]
    if asked.way.other is not None:
        moves.append(Move(asked.way.other, rooms.where[asked.way.mover]))
    acts.append((moves, asked.way.change))
    assert len(acts) > 4
    for moves, says in acts:
        before = total_with_suites(placement)
        act = places_move(
            user=bob,
            placement=placement,
            moves=moves,
            version=placement.version,
            sentence="Moved.",
        )
        placement.refresh_from_db()
        assert total_with_suites(placement) - before == pytest.approx(says, abs=1e-9)
        decision_undo(user=bob, placement=placement, event=act)
        placement.refresh_from_db()


def test_rooms_that_become_a_suite_part_those_who_may_not_share_it(
    bob: User, placement: Placement
) -> None:
    rooms = [
        Room.objects.get(pk=placement.places.filter(
            room__hall="Alder", student__attributes__Gender=gender
        ).values_list("room", flat=True)[0])
        for gender in "FM"
    ]  # fmt: skip
    living = placement.places.filter(room__in=rooms).count()
    _, note = rooms_change(
        user=bob,
        buildings=placement.buildings,
        rooms=[room.pk for room in rooms],
        values={"suite": "1"},
    )
    assert "another room in the draft P" in note
    assert 0 < placement.places.filter(room__in=rooms).count() < living
    assert not broken(placement)


def test_without_suites_their_settings_change_no_number(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> None:
    placed = [
        place(bob, first_years, campus, learned, designation="Gender", suite=suite, suite_same=same)
        for suite, same in ((0.25, True), (5.0, False))
    ]
    seats = [list(one.places.values_list("number", "room", "bed", "score")) for one in placed]
    assert seats[0] == seats[1]
    keys = ("score", "weight", "upper_bound")
    assert [placed[0].figures[k] for k in keys] == [placed[1].figures[k] for k in keys]
    assert "n_suites" not in placed[0].figures
    assert RULES.suite_same


def test_late_changes_and_new_versions_keep_the_rules_of_suites(
    bob: User, first_years: Cohort, suites: BuildingList, learned: LearnedModel
) -> None:
    placement = place(bob, first_years, suites, learned)
    # A second version under a weight that counts suite mates much, over moves by hand.
    rules = replace(PlacementRules.from_json(placement.rules), suite=3.0)
    rules_change(user=bob, placement=placement, rules=rules, seed=5)
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    placement.refresh_from_db()
    mover = placement.places.with_bed().first()
    places_move(
        user=bob,
        placement=placement,
        moves=[Move(mover.number, None)],
        version=placement.version,
        sentence="Moved out.",
    )
    placement.refresh_from_db()
    version = placement.versions.get(used_at=None)
    assert version.figures["suite_weight"] == 3.0
    digest = fit_version(placement, version).digest
    version_use(user=bob, placement=placement, number=version.number, digest=digest)
    placement.refresh_from_db()
    assert not broken(placement)
    # Late changes after a withdrawal, at a price at which people move.
    placement_publish(user=bob, placement=placement, version=placement.version)
    placement.refresh_from_db()
    before = dict(placement.places.values_list("number", "room"))
    change = change_propose(user=bob, placement=placement, price=0.02, pinned=())
    for job in run_waiting():
        assert job.state == "succeeded", job.error
    change.refresh_from_db()
    placement.refresh_from_db()
    assert change.figures["n_moved"] == sum(
        old is not None and old != new for _, old, new in change.rows
    )
    if change.rows:
        change_keep(user=bob, placement=placement, change_id=change.pk)
        assert dict(placement.places.values_list("number", "room")) != before
    assert not broken(placement)
