"""Requests beside a placement: what each costs, what no room allows, how they count."""

from collections.abc import Callable
from itertools import combinations

import pytest
from django.test import Client

from tests.webapp.factories.campus import check, two_rooms
from tests.webapp.factories.university import run_waiting
from tests.webapp.housing.test_choices import bound, seen, total
from tests.webapp.housing.test_requests import send
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.requests import impossible_of
from webapp.housing.selectors.togetherness import asked_pairs
from webapp.housing.services.decisions import Move, places_lock, places_move
from webapp.housing.services.requests import requests_cut
from webapp.housing.services.undo import decision_undo

ClientOf = Callable[[User], Client]
APART = "Required to live together, but placed apart"


def test_every_way_together_that_is_offered_costs_what_it_says(
    bob: User,
    placement: Placement,
) -> None:
    rooms = PlacementRooms(placement)
    people = sorted(rooms.where)[:14]
    answers = asked_pairs(rooms, list(combinations(people, 2)))
    ways = [row for row in answers if row.way]
    assert any(row.way.other is None for row in ways)
    assert any(row.way.other is not None for row in ways)
    before = total(placement)
    for row in ways[:12]:
        way, where = row.way, dict(placement.places.values_list("number", "room_id"))
        moves = [Move(way.mover, way.room.pk)]
        moves += [] if way.other is None else [Move(way.other, where[way.mover])]
        event = places_move(moves=moves, sentence="together", **seen(placement, bob))
        check(placement)
        now = dict(placement.places.values_list("number", "room_id"))
        assert now[row.asker] == now[row.target]
        assert total(placement) - before == pytest.approx(way.change, abs=1e-9)
        decision_undo(user=bob, placement=placement, event=event)
    for row in answers:
        assert (row.shared is not None) == rooms.is_together(row.asker, row.target)
        assert row.way is None or not {row.way.mover, row.way.other} & bound(placement)


def test_who_is_locked_is_not_moved_to_honour_a_wish(
    bob: User,
    placement: Placement,
) -> None:
    everybody = list(placement.places.values_list("number", flat=True))
    places_lock(numbers=everybody, locked=True, **seen(placement, bob))
    answers = asked_pairs(PlacementRooms(placement), list(combinations(everybody[:6], 2)))
    assert {row.way.mover for row in answers if row.way} == set()


def test_a_mutual_wish_that_no_room_allows_is_listed_with_its_fix(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    cohort = placement.cohort
    women, men = (
        [s.original_id for s in cohort.students.all() if s.attributes["Gender"] == gender]
        for gender in "FM"
    )
    taken = bound(placement)
    free = [
        next(i for i in ids if cohort.students.get(original_id=i).number not in taken)
        for ids in (women, men)
    ]
    send(bob, cohort, ",".join(free), ",".join(free[::-1]))
    (wish,) = impossible_of(cohort)
    assert wish.reason.endswith("differ in Gender, which roommates share.")
    address = f"/cohorts/{cohort.pk}/requests/"
    client = client_of(bob)
    listed = Page(client.get(address)).one("region", "Mutual, but no room takes them")
    assert listed.one("listitem").says("differ in Gender, which roommates share.")
    members = "-".join(map(str, wish.members))
    page = Page(client.post(f"{address}impossible/", {"members": members}, follow=True))
    assert page.has("status", "1 mutual request left out.")
    assert not impossible_of(cohort)
    assert bound(placement) == taken
    page = Page(client.post(f"{address}impossible/", {"members": members}, follow=True))
    assert page.has("alert", "These requests were settled or changed meanwhile.")
    page = Page(client.post(f"{address}impossible/", {}, follow=True))
    assert page.has("alert", "Every group that asked for each other fits into a room.")


def test_a_must_that_is_counted_again_while_they_live_apart_is_said_with_its_button(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    cohort, client = placement.cohort, client_of(bob)
    address = f"/cohorts/{cohort.pk}/requests/"
    assert not Page(client.get(address)).has("region", APART)
    rooms = [[n for n in room if n not in bound(placement)] for room in two_rooms(placement)]
    a, b = sorted((rooms[0][0], rooms[1][0]))
    ids = [cohort.students.get(number=number).original_id for number in (a, b)]
    send(bob, cohort, ",".join(ids), ",".join(ids[::-1]))
    requests_cut(user=bob, cohort=cohort, pairs=[(a, b)])
    assert not Page(client.get(address)).has("region", APART)
    answer = client.post(f"{address}keep/", {"all": "1"}, follow=True)
    page = Page(answer)
    told = "2 requests counted again. 1 request that is a must is not honoured in P:"
    assert page.has("status", told)
    assert not page.says("All settled")
    (row,) = answer.context["musts"]["answers"]
    assert (row.asker, row.target) == (a, b)
    assert page.one("region", APART).has("button", row.way.words, exactly=True)
    sent = {"act": "swap", "student": [f"S-{row.way.mover}", f"S-{row.way.other}"]}
    if row.way.other is None:
        sent = {"act": "move", "student": f"S-{row.way.mover}", "to": str(row.way.room)}
    placement.refresh_from_db()
    client.post(f"/placements/{placement.pk}/decide/", sent | {"version": placement.version})
    assert PlacementRooms(placement).is_together(a, b)
    check(placement)
    assert not Page(client.get(address)).has("region", APART)


def test_a_must_is_solved_or_left_out_without_leaving_the_page(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    """A swap once went to the rooms, so that the next request had to be looked for again."""
    cohort, client = placement.cohort, client_of(bob)
    address = f"/cohorts/{cohort.pk}/requests/"
    rooms = [[n for n in room if n not in bound(placement)] for room in two_rooms(placement)]
    for a, b in ((rooms[0][0], rooms[1][0]), (rooms[0][1], rooms[1][1])):
        ids = [cohort.students.get(number=number).original_id for number in (a, b)]
        send(bob, cohort, ",".join(ids), ",".join(ids[::-1]))
        requests_cut(user=bob, cohort=cohort, pairs=[(a, b)])
    client.post(f"{address}keep/", {"all": "1"})
    answer = client.get(address)
    first, second = answer.context["musts"]["answers"]
    panel = Page(answer).one("region", APART)
    assert len(panel.every("button", "Leave out S-")) == 2
    assert [form.address for form in panel.every("form")].count(f"{address}cut/") == 2
    from_here = {"back": f"{address}?show=mutual&page=1"}
    left = {"pair": f"{second.asker}-{second.target}"}
    answer = client.post(f"{address}cut/", left | from_here)
    assert answer["Location"] == from_here["back"]
    for evil in ("https://evil.example/", f"//evil.example{address}", "/people/", address[:-2]):
        answer = client.post(f"{address}keep/", {"all": "1", "back": evil})
        assert answer["Location"] == address
        client.post(f"{address}cut/", left | {"back": evil})
    (row,) = client.get(address).context["musts"]["answers"]
    assert (row.asker, row.target) == (first.asker, first.target)
    sent = {"act": "swap", "student": [f"S-{row.way.mover}", f"S-{row.way.other}"]}
    if row.way.other is None:
        sent = {"act": "move", "student": f"S-{row.way.mover}", "to": str(row.way.room)}
    placement.refresh_from_db()
    sent |= {"version": placement.version}
    decide = f"/placements/{placement.pk}/decide/"
    answer = client.post(decide, sent | {"back": address})
    assert answer["Location"] == address
    assert PlacementRooms(placement).is_together(row.asker, row.target)
    event = placement.events.first()
    undo = f"/placements/{placement.pk}/undo/{event.pk}/"
    assert client.post(undo, from_here)["Location"] == from_here["back"]


def test_how_requests_count_is_tried_beside_and_its_cost_told(
    bob: User,
    mallory: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    address = f"/cohorts/{placement.cohort_id}/requests/"
    client = client_of(bob)
    sent = {"placement": placement.pk}
    same = Page(client.post(f"{address}try/", sent, follow=True))
    assert same.has("alert", "Requests count so already.")
    client.post(f"{address}try/", sent | {"mutual": "no", "one_sided": "no"})
    run_waiting()
    rules = PlacementRules.from_json(placement.rules)
    copy = Placement.objects.exclude(pk=placement.pk).get()
    tried = PlacementRules.from_json(copy.rules)
    assert (tried.mutual, tried.one_sided) == ("no", "no")
    assert (tried.same, tried.designation) == (rules.same, rules.designation)
    client_of(bob).post(f"{address}count/", sent | {"placement": copy.pk})
    Placement.objects.filter(pk=placement.pk).update(published_at=placement.best_at)
    page = Page(client.get(address))
    assert page.says("mutual not counted, one-sided not counted")
    assert page.has("button", "Try as a scenario")
    assert not page.has("button", "Place again")
    sent_wrong = sent | {"wish": "many", "mutual": "wish"}
    wrong = Page(client.post(f"{address}try/", sent_wrong, follow=True))
    assert wrong.has("alert", "A wish counts from 0 to 100")
    assert client_of(mallory).post(f"{address}try/", sent).status_code == 404
    other = Page(client.post(f"{address}try/", {"placement": "x"}, follow=True))
    assert other.has("alert", "This placement is not of this cohort")
