"""Accepting, keeping and acting on all rooms that match; latecomers and the waiting list."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.campus import RULES, check, csv_file, two_rooms
from tests.webapp.factories.university import cohort_of, run_waiting
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused, field_values
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Place, Placement, Room
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.offers import bed_offers, beds_for
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.decisions import Move, places_lock, places_move
from webapp.housing.services.placements import placement_create
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.reviews import rooms_accept
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]


def seen(placement: Placement, user: User) -> dict[str, object]:
    placement.refresh_from_db()
    return {"user": user, "placement": placement, "version": placement.version}


def post(client: Client, placement: Placement, **data: object):
    placement.refresh_from_db()
    sent = {"version": placement.version, "back": "hall=all", **data}
    return client.post(f"/placements/{placement.pk}/decide/", sent)


def test_a_room_is_accepted_with_the_people_of_then(bob: User, placement: Placement) -> None:
    (a, _), _ = two_rooms(placement)
    room = placement.places.get(number=a).room_id
    rooms_accept(rooms=[room], accepted=True, **seen(placement, bob))

    def is_accepted() -> bool:
        cards = PlacementRooms(Placement.objects.get(pk=placement.pk)).cards()
        return next(card.is_accepted for card in cards if card.room.pk == room)

    assert is_accepted()
    event = places_move(moves=[Move(a, None)], sentence="out", **seen(placement, bob))
    assert not is_accepted()
    decision_undo(user=bob, placement=placement, event=event)
    assert is_accepted()


@pytest.mark.parametrize(
    ("act", "title"),
    [
        ("accept", "Accept {occupied} rooms?"),
        ("lock", "Lock {occupied} rooms?"),
        ("empty", "Empty {occupied} rooms?"),
        ("keep", "Hold 8 rooms back?"),
    ],
)
def test_an_act_on_all_rooms_that_match_names_its_number_and_asks(
    bob: User, placement: Placement, client_of: ClientOf, act: str, title: str
) -> None:
    client = client_of(bob)
    page = Page(client.get(f"/placements/{placement.pk}/?designation=F"))
    assert page.has("button", "8 rooms that match…", exactly=True)
    before = state(placement)
    sent = {"back": "designation=F", "scope": "matching", "count": "8", "act": act}
    page = Page(post(client, placement, **sent))
    living = placement.places.filter(room__designation="F")
    people = living.count()
    title = title.format(occupied=living.values("room").distinct().count())
    assert page.has("heading", title, exactly=True)
    assert page.has("paragraph", f"{people} people live there")
    assert state(placement) == before
    for wrong in ({"confirmed": people - 1}, {"confirmed": people, "count": "7"}):
        page = Page(post(client, placement, **sent | wrong))
        assert page.has("heading", title, exactly=True)
        assert state(placement) == before
    post(client, placement, **sent, confirmed=people)
    event = placement.events.first()
    assert event.version == 3
    client.post(f"/placements/{placement.pk}/undo/{event.pk}/")
    assert state(placement) == before


BULK_ACTS = {
    "accept": ("Accept 6 rooms?", "11 people live there", "3 other rooms that match stay"),
    "reopen": ("Undecide 1 room?", "2 people live there", "8 other rooms that match stay"),
    "lock": ("Lock 6 rooms?", "11 people live there", "3 other rooms that match stay"),
    "release": ("Release 1 room?", "2 people live there", "8 other rooms that match stay"),
    "empty": ("Empty 7 rooms?", "13 people live there", "2 other rooms that match stay"),
    "keep": ("Hold 8 rooms back?", "13 people live there", "1 other room that matches stays"),
    "open": ("Open 1 room?", "Nobody lives there", "8 other rooms that match stay"),
}


@pytest.mark.parametrize("act", BULK_ACTS)
def test_a_bulk_act_counts_only_the_rooms_that_it_changes(
    bob: User, campus: BuildingList, first_years: Cohort, learned: LearnedModel, client_of, act: str
) -> None:
    """Nine rooms: one is empty, one is held back and empty, one is accepted and locked."""
    placement = Placement.objects.create(
        organisation=bob.organisation,
        name="P",
        cohort=first_years,
        buildings=campus,
        model=learned,
        rules=RULES.to_json(),
        revision=1,
    )
    Room.objects.create(buildings=campus, hall="Alder", name="K1", capacity=2, state="kept",
                        designation="F")  # fmt: skip
    women = list(first_years.students.filter(attributes__Gender="F")[:13])
    rooms = [room for room in campus.rooms.filter(floor="1") for _ in range(2)]
    Place.objects.bulk_create(
        Place(placement=placement, student=one, number=one.number, room=room, bed=1 + k % 2)
        for k, (one, room) in enumerate(zip(women, rooms, strict=False))
    )
    decided = rooms[0].pk
    rooms_accept(rooms=[decided], accepted=True, **seen(placement, bob))
    numbers = [one.number for one in women[:2]]
    places_lock(numbers=numbers, locked=True, **seen(placement, bob))
    sent = {"back": "designation=F", "scope": "matching", "count": "9", "act": act}
    client = client_of(bob)
    asked = post(client, placement, **sent)
    title, *numbers = BULK_ACTS[act]
    page = Page(asked)
    assert page.has("heading", title, exactly=True)
    for words in numbers:
        assert page.has("paragraph", words), words
    (count,), (people,) = field_values(asked, "count"), field_values(asked, "confirmed")
    before = state(placement)
    post(client, placement, **sent | {"count": count, "confirmed": people})
    assert state(placement) != before
    assert placement.events.count() == 3
    if act == "open":
        answer = post(client, placement, **sent)
        page = Page(client.get(answer.url))
        refusal = "None of the rooms that match is held back. Nothing was changed."
        assert page.has("alert", refusal)


def state(placement: Placement) -> list[tuple[object, ...]]:
    """Return everything that acts change."""
    places = placement.places.values_list("number", "room", "bed", "is_locked", "has_left")
    rooms = placement.buildings.rooms.values_list("pk", "state")
    return [*places, *rooms, *placement.accepted_rooms.values_list("room", "members")]


def test_who_is_emptied_out_is_named_in_the_question(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    _, (c, _) = two_rooms(placement)
    room = placement.places.get(number=c).room
    places_lock(numbers=[c], locked=True, **seen(placement, bob))
    back = f"q={room.label}&hall=all"
    sent = {"back": back, "scope": "matching", "count": "1", "act": "empty"}
    page = Page(post(client_of(bob), placement, **sent))
    others = list(placement.places.filter(room=room).values_list("number", flat=True))
    assert page.has("paragraph", "1 of them is locked and stays.")
    named = {line.text.split()[0] for line in page.every("listitem", "no room")}
    assert named == {f"S-{n}" for n in others if n != c}


@pytest.mark.parametrize("view", ["rooms", "table", "students"])
def test_a_decision_answers_with_what_it_changed(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
    view: str,
) -> None:
    (a, _), (c, _) = two_rooms(placement)
    one, other = (placement.places.get(number=n).room for n in (a, c))
    answer = client_of(bob).post(
        f"/placements/{placement.pk}/decide/",
        {
            "act": "accept",
            "room": one.pk,
            "then": other.pk,
            "version": placement.version,
            "back": f"view={view}&room={one.pk}",
        },
        headers={"hx-request": "true"},
    )
    page = Page(answer)
    assert f'data-drawer="{other.pk}"' in page.source  # the card of the room that follows
    assert page.has("heading", other.label, exactly=True)
    assert page.says(f"{one.label} accepted.")
    if view == "students":
        assert answer["HX-Retarget"] == "#placement"
    else:
        assert page.source.count('id="room-') == 1
    assert "<html" not in page.source


def test_viewers_see_all_three_ways_and_decide_nothing(
    alice: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    client = client_of(alice)
    for view in ("rooms", "table", "students"):
        page = Page(client.get(f"/placements/{placement.pk}/?view={view}&sort=doubt"))
        assert page.has("listitem" if view == "rooms" else "row", "S-1001")
        assert "that match" not in page.source
    assert post(client, placement, act="accept", room="1").status_code == 403


def test_students_who_asked_as_a_must_are_not_parted(bob: User, placement: Placement) -> None:
    pair = list(placement.places.filter(student__original_id__in=("N000", "N003")))
    free = placement.buildings.rooms.filter(hall="Elm", capacity=1).first()
    placement.places.filter(room=free).update(room=None, bed=None)
    with pytest.raises(HousingError, match="asked to live together, which is a must"):
        places_move(moves=[Move(pair[0].number, free.pk)], sentence="moved", **seen(placement, bob))
    check(placement)


def test_two_cohorts_are_never_published_into_one_room(
    bob: User,
    carol: User,
    past,
    placement: Placement,
) -> None:
    others = cohort_of(bob, past, 1, "Transfers", with_pairs=False)
    second = placement_create(
        user=bob,
        name="T",
        cohort=others,
        buildings=placement.buildings,
        model=placement.model,
        rules=RULES,
    )
    run_waiting()
    placement_publish(user=carol, placement=placement, version=placement.version)
    second.refresh_from_db()
    with pytest.raises(HousingError, match="taken in P, which is published"):
        placement_publish(user=carol, placement=second, version=second.version)


def test_latecomers_wait_for_a_bed_and_are_offered_those_that_keep_the_rules(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    client, cohort = client_of(bob), placement.cohort
    assert cohort_survey(cohort).n_students == 32
    question = cohort.questions[0]
    text = f"id,Gender,{question['name']}\nL1,F,{question['levels'][0]}\nL2,M,\n"
    answer = client.post(f"/cohorts/{cohort.pk}/add/", {"file": csv_file(text)})
    page = Page(client.post(f"{answer.url}confirm/", {"version": 1}, follow=True))
    assert page.has("status", "2 students added: S-1033 to S-1034")
    cohort = Cohort.objects.get(pk=cohort.pk)
    assert cohort_survey(cohort).n_students == 34
    fresh = Placement.objects.get(pk=placement.pk)
    assert (fresh.n_people, fresh.n_placed) == (placement.n_people + 2, placement.n_placed)
    rooms = PlacementRooms(fresh)
    assert rooms.homeless[-2:] == [1033, 1034]
    client.post(f"/placements/{placement.pk}/changes/first/", {"students": "S-1034"})
    assert PlacementRooms(fresh).homeless[0] == 1034
    for offer in beds_for(rooms, [1033], Scores(fresh))[1033]:
        assert offer.room.designation in ("", "F")
    people = two_rooms(placement)[0]
    room = placement.places.get(number=people[0]).room
    moves = [Move(n, None) for n in people]
    places_move(moves=moves, sentence="out", **seen(placement, bob))
    page = Page(client.get(f"/placements/{placement.pk}/?room={room.pk}"))
    assert page.one("complementary", "Room").says("first on the waiting list")
    data = {"students": "S-1033", "room": room.pk, "version": fresh.version}
    fresh.refresh_from_db()
    data["version"] = fresh.version
    client.post(f"/placements/{placement.pk}/changes/give/", data)
    assert placement.places.get(number=1033).room == room
    check(placement)


def test_no_bed_and_no_swap_is_offered_that_parts_a_pair_who_must_live_together(
    bob: User, placement: Placement
) -> None:
    """S-1001 and S-1004 asked for each other. One of them waits while another room has a bed."""
    together = placement.places.get(number=1001).room_id
    gender = placement.cohort.students.get(number=1004).attributes["Gender"]
    other = placement.places.filter(student__attributes__Gender=gender, room__capacity=2).exclude(
        room=together
    )[0]
    for number in (1004, other.number):
        moves = [Move(number, None)]
        places_move(moves=moves, sentence="out", **seen(placement, bob))
    rooms = PlacementRooms(Placement.objects.get(pk=placement.pk))
    scores = Scores(rooms.placement)
    offers = beds_for(rooms, [1004, other.number], scores)
    assert [offer.room.pk for offer in offers[1004]] == [together]
    assert other.room_id in [offer.room.pk for offer in offers[other.number]]
    (card,) = [card for card in rooms.cards() if card.room.pk == other.room_id]
    assert other.number in [offer.number for offer in bed_offers(rooms, card, scores)]
    assert 1004 not in [offer.number for offer in bed_offers(rooms, card, scores)]
    Place.objects.filter(placement=placement, number=1004).update(room=other.room_id, bed=other.bed)
    rooms = PlacementRooms(Placement.objects.get(pk=placement.pk))
    assert 1004 not in [swap.number for swap in choices_of(rooms, 1001).swaps]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,Gender\n,F\n", "has no id"),
        ("id,Gender\nN001,F\n", "N001 is in First-years already. Leave it out."),
        ("id,Gender\nX1,F\nX1,F\n", "Row 3: X1 stands in row 2 already."),
        ("id,Gender\n", ""),
        ("", ""),
        ("%PDF-1.4", ""),
    ],
)
def test_a_bad_file_of_latecomers_gets_one_sentence_and_adds_nobody(
    bob: User, first_years: Cohort, client_of: ClientOf, text: str, words: str
) -> None:
    client = client_of(bob)
    answer = client.post(f"/cohorts/{first_years.pk}/add/", {"file": csv_file(text)})
    if answer.status_code == 302:  # it can be read, and the preview says what is in the way
        client.post(f"{answer.url}confirm/", {"version": 1})
        page = Page(client.get(answer.url))
    else:
        page = Page(answer, status=422)
    assert page.says(words)
    assert first_years.students.count() == 32


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"id": "X\x071"}, "contains a character that cannot be saved"),
        ({"id": "X1", "r0": "F" * 300}, "longer than 200 characters"),
        ({"id": "x" * 1001}, "longer than 1,000 characters"),
        ({"id": " "}, "has no id"),
        ({"id": "X1", "q0": "whenever"}, "is not an answer to this question"),
    ],
)
def test_a_bad_latecomer_by_hand_gets_one_sentence(
    bob: User, first_years: Cohort, client_of: ClientOf, sent: dict[str, str], words: str
) -> None:
    page = Page(client_of(bob).post(f"/cohorts/{first_years.pk}/add/", sent), status=422)
    assert page.says(words)
    assert first_years.students.count() == 32


def test_an_answer_that_is_none_is_named_by_row_and_column(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    name = first_years.questions[0]["name"]
    file = csv_file(f"id,{name}\nX1,whenever\n")
    sent = {"file": file}
    page = Page(client_of(bob).post(f"/cohorts/{first_years.pk}/add/", sent, follow=True))
    assert page.says(f"Row 2, {name}: “whenever” is not an answer to this question")


def test_who_withdraws_is_named_by_either_id_and_can_come_back(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    client, address = client_of(bob), f"/placements/{placement.pk}/changes/withdraw/"
    data = {"version": placement.version, "students": "N005\nS-1007, nobody"}
    error = "“nobody” is nobody in First-years"
    check_refused(client.post(address, data), data, field="students", error=error)
    assert not placement.places.filter(has_left=True).exists()
    client.post(address, data | {"students": "N005\nS-1007"})
    assert set(placement.places.filter(has_left=True).values_list("number", flat=True)) == {
        1006,
        1007,
    }
    placement.refresh_from_db()
    old = f"/placements/{placement.pk}/changes/act/"
    sent = {"act": "return", "version": placement.version, "students": "S-1007"}
    client.post(old, sent, follow=True)
    assert placement.places.get(number=1007).has_left is False


def test_doubt_is_a_share_of_the_roommates_whom_the_rules_allow(placement: Placement) -> None:
    shares = list(placement.places.values_list("doubt", flat=True))
    assert all(0.0 < share <= 1.0 for share in shares)
    assert Room.objects.filter(buildings=placement.buildings).count() == 21


def test_home_says_how_far_each_cohort_is(
    alice: User,
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    page = Page(client_of(alice).get("/"))
    assert page.has("heading", "Where each cohort stands")
    assert page.says("32 of 32 placed")
    lived_in = placement.places.values("room").distinct().count()
    assert page.says(f"Not published yet, 0 of {lived_in} rooms accepted")
    assert page.one("row", "First-years").has("link", "32 of 32 have a room")
    for said in (page, Page(client_of(bob).get("/"))):  # who has a room needs no pair
        assert not said.says("have no roommates yet")
        assert not said.says("To be placed")
    late = Page(client_of(bob).get(f"/cohorts/{placement.cohort_id}/add/"))
    assert not late.says("up to MB")
    assert late.says("CSV or XLSX, up to 20 MB")


def test_what_a_decision_says_of_the_filter_is_what_the_page_says(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many rooms the page shows the first hall; an answer to a decision must not forget that."""
    monkeypatch.setattr("webapp.housing.selectors.pages.SMALL", 5)
    client = client_of(bob)
    page = Page(client.get(f"/placements/{placement.pk}/"))
    assert page.has("button", "16 rooms that match…", exactly=True)
    room = placement.places.filter(room__hall="Alder").first().room_id
    data = {"act": "accept", "room": room, "version": placement.version, "back": f"room={room}"}
    address = f"/placements/{placement.pk}/decide/"
    answer = client.post(address, data, headers={"hx-request": "true"})
    assert Page(answer).has("button", "16 rooms that match…", exactly=True)
