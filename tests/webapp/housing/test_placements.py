"""Placements: worked out by the real solver, shown, decided, undone, published and exported."""

import csv
import io
from collections.abc import Callable

import openpyxl
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.webapp.factories.campus import RULES, check, two_rooms
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.common.formats import counted
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import BuildingList, Place, Placement, ProposedChange
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.publication import moved_between
from webapp.housing.services.changes import change_keep, change_propose, is_stale
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.services.placements import (
    placement_compute,
    placement_copy,
    placement_create,
)
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.matching.services.set_models import model_set

ClientOf = Callable[[User], Client]


def test_everybody_gets_a_room_within_the_rules_and_with_a_certificate(
    placement: Placement,
) -> None:
    assert placement.is_computed
    assert placement.places.count() == 32
    assert placement.figures["relative_gap"] <= 0.005
    check(placement)


def test_mutual_requests_are_a_must(placement: Placement) -> None:
    one, other = placement.places.filter(student__original_id__in=("N000", "N003"))
    assert one.room_id == other.room_id is not None


def test_the_page_shows_halls_rooms_and_the_drawer(
    alice: User, placement: Placement, client_of: ClientOf
) -> None:
    client = client_of(alice)
    page = Page(client.get(f"/placements/{placement.pk}/"))
    assert page.one("navigation", "Halls, beds taken").has("link", "Alder")
    assert page.one("main").says(f"{placement.name} Within ")
    room = placement.places.filter(room__hall="Elm", room__capacity=3).first()
    room = room.room if room else placement.places.filter(room__isnull=False).first().room
    address = f"/placements/{placement.pk}/?room={room.pk}"
    opened = Page(client.get(address)).one("complementary", "Room")
    assert opened.has("heading", room.label, exactly=True)
    assert opened.says("Mean of pairs")
    part = Page(client.get(address, headers={"hx-request": "true", "hx-target": "drawer"}))
    assert part.has("heading", room.label, exactly=True)
    assert "<html" not in part.source


def test_a_swap_changes_both_rooms_and_undo_puts_them_back(bob: User, placement: Placement) -> None:
    (a, _), (b, _) = two_rooms(placement)
    before = {p.number: (p.room_id, p.bed) for p in placement.places.all()}
    event = places_move(
        user=bob,
        placement=placement,
        moves=[Move(a, before[b][0]), Move(b, before[a][0])],
        version=placement.version,
        sentence="swapped",
    )
    check(placement)
    after = dict(placement.places.values_list("number", "room_id"))
    assert (after[a], after[b]) == (before[b][0], before[a][0])
    decision_undo(user=bob, placement=placement, event=event)
    assert {p.number: (p.room_id, p.bed) for p in placement.places.all()} == before
    with pytest.raises(HousingError, match="undone already"):
        decision_undo(user=bob, placement=placement, event=event)


def test_what_a_swap_offers_is_what_it_does(bob: User, placement: Placement) -> None:
    from webapp.housing.scores import Scores
    from webapp.housing.selectors.placements import PlacementRooms
    from webapp.housing.selectors.rooms import swap_offers

    (a, _), _ = two_rooms(placement)
    rooms = PlacementRooms(placement)
    card = next(c for c in rooms.cards() if a in [p.number for p in c.people])
    offer = swap_offers(rooms, Scores(placement), card, a)[0]

    def total() -> float:
        return sum(s for s in placement.places.values_list("score", flat=True) if s is not None) / 2

    before = total()
    moves = [Move(a, offer.room.pk), Move(offer.number, card.room.pk)]
    places_move(
        user=bob, placement=placement, moves=moves, version=placement.version, sentence="swapped"
    )
    assert total() - before == pytest.approx(offer.total, abs=1e-9)


def test_a_rule_that_would_break_is_named_and_nothing_moves(
    bob: User, placement: Placement, campus: BuildingList
) -> None:
    woman = placement.places.filter(student__attributes__Gender="F", room__isnull=False).first()
    offline = campus.rooms.get(name="D9")
    for room, words in (
        (campus.rooms.filter(designation="M").first(), "is for Gender"),
        (offline, "offline"),
    ):
        with pytest.raises(HousingError, match=words):
            places_move(
                user=bob,
                placement=placement,
                moves=[Move(woman.number, room.pk)],
                version=placement.version,
                sentence="moved",
            )
    woman.refresh_from_db()
    check(placement)


def test_a_full_room_takes_nobody(bob: User, placement: Placement) -> None:
    (a, _), (b, _) = two_rooms(placement)
    room = placement.places.get(number=b).room
    with pytest.raises(HousingError, match="has 2 beds, fewer than 3"):
        places_move(
            user=bob,
            placement=placement,
            moves=[Move(a, room.pk)],
            version=placement.version,
            sentence="moved",
        )


def test_who_comes_second_is_told(bob: User, placement: Placement) -> None:
    (a, _), _ = two_rooms(placement)
    options = {"user": bob, "placement": placement, "sentence": "out"}
    places_move(moves=[Move(a, None)], version=placement.version, **options)
    with pytest.raises(PlacesChangedError):
        places_move(moves=[Move(a, None)], version=placement.version, **options)


def test_who_is_locked_stays_when_placed_again(bob: User, placement: Placement) -> None:
    people, _ = two_rooms(placement)
    places_lock(
        user=bob, placement=placement, numbers=people, locked=True, version=placement.version
    )
    room = placement.places.get(number=people[0]).room_id
    placement.refresh_from_db()
    with pytest.raises(HousingError, match="is locked"):
        places_move(
            user=bob,
            placement=placement,
            moves=[Move(people[0], None)],
            version=placement.version,
            sentence="out",
        )
    placement_compute(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    found = placement.places.filter(number__in=people)
    assert {place.room_id for place in found} == {room}
    assert all(place.is_locked for place in found)


def test_late_changes_are_shown_then_kept_all_or_none(
    bob: User, carol: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, b), (c, _) = two_rooms(placement)
    students_withdraw(user=bob, placement=placement, numbers=[a, c], version=placement.version)
    placement.refresh_from_db()
    placement_publish(user=carol, placement=placement, version=placement.version)
    placement.refresh_from_db()
    rooms = dict(placement.places.values_list("number", "room_id"))
    change_propose(user=bob, placement=placement, price=0.5, pinned=[b])
    jobs = run_waiting()
    assert [job.state for job in jobs] == ["succeeded"] * 2, [job.error for job in jobs]
    assert dict(placement.places.values_list("number", "room_id")) == rooms  # nothing kept yet
    change = ProposedChange.objects.get(placement=placement)
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/changes/"))
    assert page.has("heading", "Who moves and why")
    assert page.has("heading", "Before and after")
    before, after = change.outcomes["before"], change.outcomes["after"]
    assert (before["people"], after["people"]) == (len(rooms) - 2, len(rooms) - 2)
    assert_moves_as_file(client_of(bob), placement, change)
    assert b not in [row for row in change.rows if row[1] is not None and row[0] == b]
    change_keep(user=bob, placement=placement, change_id=change.pk)
    check(placement)
    gone = placement.places.filter(number__in=[a, c])
    assert all(place.has_left and place.room_id is None for place in gone)
    now = dict(placement.places.values_list("number", "room_id"))
    moved = [n for n, room in now.items() if rooms[n] is not None and rooms[n] != room]
    assert len(moved) <= 2
    then = outcome(PlacementRooms(Placement.objects.get(pk=placement.pk)), after["low"])
    for name, value in after.items():
        assert then[name] == (pytest.approx(value) if isinstance(value, float) else value), name


def assert_moves_as_file(client: Client, placement: Placement, change: ProposedChange) -> None:
    answer = client.get(f"/placements/{placement.pk}/changes/moves.csv")
    rows = list(csv.DictReader(answer.content.decode("utf-8-sig").splitlines()))
    assert len(rows) == len(change.rows)
    assert all(row["Why"] and row["Before"] != row["After"] for row in rows)
    assert client.get(f"/placements/{placement.pk}/changes/moves.pdf").status_code == 404


def test_staff_choose_another_room_within_late_changes(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, b), _ = two_rooms(placement)
    own = placement.places.get(number=a).room
    students_withdraw(user=bob, placement=placement, numbers=[b], version=placement.version)
    change_propose(user=bob, placement=placement, price=0.5, pinned=[])
    run_waiting()
    free = next(
        choice.card.room
        for choice in choices_of(PlacementRooms(Placement.objects.get(pk=placement.pk)), a).rooms
    )
    client, at = client_of(bob), f"/placements/{placement.pk}/changes/"
    client.post(f"{at}choose/", {"students": f"S-{a}", "room": free.pk})
    change = ProposedChange.objects.get(placement=placement)
    assert change.chosen == {str(a): free.pk}
    run_waiting()
    change.refresh_from_db()
    assert change.rooms[str(placement.places.get(number=a).student_id)] == free.pk
    assert Page(client.get(at)).has("button", f"S-{a} in {free.label}")
    client.post(f"{at}choose/", {"students": f"S-{a}"})
    assert ProposedChange.objects.get(placement=placement).chosen == {}
    assert placement.places.get(number=a).room == own  # nothing was kept
    client.post(f"{at}choose/", {"students": f"S-{a}", "room": 10**9})
    assert ProposedChange.objects.get(placement=placement).chosen == {}


def test_weights_set_by_hand_are_told_and_replaced_by_learned_ones(
    bob: User, alice: User, placement: Placement, learned: LearnedModel, client_of: ClientOf
) -> None:
    name = placement.cohort.questions[0]["name"]
    by_hand = model_set(user=bob, name="Ours", cohort=placement.cohort, importance={name: 2.0})
    Placement.objects.filter(pk=placement.pk).update(model=by_hand)
    at = f"/placements/{placement.pk}/"
    page = Page(client_of(bob).get(at))
    assert page.has("paragraph", "Weights set by hand.")
    assert page.has("button", "Place with learned weights")
    assert client_of(alice).post(f"{at}relearn/").status_code == 403
    answer = client_of(bob).post(f"{at}relearn/")
    made = Placement.objects.exclude(pk=placement.pk).get()
    assert answer.url == f"/placements/{made.pk}/"
    assert (made.model, made.rules) == (learned, placement.rules)
    run_waiting()
    page = Page(client_of(bob).get(f"/cohorts/{placement.cohort_id}/scenarios/"))
    assert page.has("cell", "Ours, set by hand")
    report = Page(client_of(bob).get(f"/placements/{placement.pk}/report/"))
    assert report.has("paragraph", "Scores by weights set by hand.")
    client_of(bob).post(f"/placements/{made.pk}/relearn/")  # of learned weights: refused
    assert Placement.objects.count() == 2


def test_a_change_is_stale_once_one_of_its_students_or_rooms_changed(
    bob: User, placement: Placement
) -> None:
    """A change elsewhere in the placement does not stop it."""
    (a, b), (c, _) = two_rooms(placement)
    free = placement.buildings.rooms.get(hall="Elm", name="S0")
    Place.objects.filter(room=free).update(room=None, bed=None)
    places_move(user=bob, placement=placement, moves=[Move(a, None)], version=2, sentence="out")
    change_propose(user=bob, placement=placement, price=0.5, pinned=[], chosen={b: free.pk})
    run_waiting()
    change = ProposedChange.objects.get(placement=placement)
    assert free.pk in [row[2] for row in change.rows]
    moving = {row[0] for row in change.rows}
    other = next(
        p
        for p in placement.places.filter(room__isnull=False)
        if p.student_id not in moving and p.number != c
    )
    placement.refresh_from_db()
    places_lock(
        user=bob,
        placement=placement,
        numbers=[other.number],
        locked=True,
        version=placement.version,
    )
    placement.refresh_from_db()
    students_withdraw(user=bob, placement=placement, numbers=[b], version=placement.version)
    with pytest.raises(PlacesChangedError, match=f"S-{b} was changed"):
        change_keep(user=bob, placement=placement, change_id=change.pk)
    assert is_stale(Placement.objects.get(pk=placement.pk), change)


def test_only_one_placement_of_a_cohort_is_published(
    carol: User, bob: User, placement: Placement
) -> None:
    placement_publish(user=carol, placement=placement, version=placement.version)
    second = placement_create(
        user=bob,
        name="Q",
        cohort=placement.cohort,
        buildings=placement.buildings,
        model=placement.model,
        rules=RULES,
    )
    run_waiting()
    second.refresh_from_db()
    placement_publish(user=carol, placement=second, version=second.version)
    assert list(Placement.objects.filter(published_at__isnull=False)) == [second]


@pytest.mark.parametrize("shape", ["plain", "starrez", "erezlife", "housing-cloud", "banner"])
def test_rosters_leave_rooms_as_they_are_where_that_is_chosen(
    bob: User, placement: Placement, client_of: ClientOf, shape: str
) -> None:
    student = placement.places.first().student
    student.original_id = "+4711"
    student.save()
    for room in placement.buildings.rooms.all():
        placement.buildings.rooms.filter(pk=room.pk).update(hall="-A", name=f"-1.{room.pk}")
    address = f"/placements/{placement.pk}/export"
    exact, safe, nonsense = (
        client_of(bob).get(f"{address}.csv", {"shape": shape, "ids": ids}).content.decode()
        for ids in ("exact", "", "exactly")
    )
    rows = list(csv.reader(io.StringIO(exact.removeprefix("\ufeff"))))
    assert "'+4711" in [row[0] for row in rows], "a student may have typed it"
    assert len(rows) == 33
    assert ",-" in exact
    assert ",'-" not in exact
    assert safe == nonsense
    assert ",'-" in safe
    book = client_of(bob).get(f"{address}.xlsx", {"shape": shape})
    ids = [row[0] for row in openpyxl.load_workbook(io.BytesIO(book.content)).active.values]
    assert "+4711" in ids, "as it is: text is text there"


def test_scenarios_stand_side_by_side(
    alice: User, bob: User, placement: Placement, client_of: ClientOf
) -> None:
    placement_create(
        user=bob,
        name="Free",
        cohort=placement.cohort,
        buildings=placement.buildings,
        model=placement.model,
        rules=PlacementRules(designation="Gender", same=("Gender",), mutual="no"),
    )
    run_waiting()
    with CaptureQueriesContext(connection) as queries:
        answer = client_of(alice).get(f"/cohorts/{placement.cohort_id}/scenarios/")
    shared = ("housing_room", "housing_roommaterequest", "housing_preference", "cohorts_student")
    read = [q["sql"].split(" FROM ")[-1].split()[0].strip('"') for q in queries.captured_queries]
    assert max(read.count(table) for table in shared) == 1
    page = Page(answer)
    assert page.has("row", "Mutual requests Must Not counted", exactly=True)
    assert page.has("rowheader", "Mean score")
    assert page.has("rowheader", "Rooms below")
    address = f"/cohorts/{placement.cohort_id}/scenarios/?show=differences"
    assert Page(client_of(alice).get(address)).has("cell", "compared with this")
    assert client_of(alice).get(f"/cohorts/{placement.cohort_id}/scenarios.csv").status_code == 403
    file = client_of(bob).get(f"/cohorts/{placement.cohort_id}/scenarios.csv")
    rows = list(csv.reader(file.content.decode("utf-8-sig").splitlines()))
    assert rows[0] == ["", "P", "Free"]
    assert ["Mutual requests", "Must", "Not counted"] in rows


def test_a_scenario_is_published_from_the_comparison(
    alice: User, bob: User, carol: User, placement: Placement, client_of: ClientOf
) -> None:
    rules = PlacementRules(designation="Gender", same=("Gender",), mutual="no")
    other = placement_copy(user=bob, placement=placement, rules=rules)
    run_waiting()
    other.refresh_from_db()
    address = f"/cohorts/{placement.cohort_id}/scenarios/"
    for user in (alice, bob):
        page = Page(client_of(user).get(address))
        assert page.has("paragraph", "An administrator publishes.")
        assert not page.has("button", "Publish")
        assert not page.has("dialog", "Publish")
    client, post = client_of(carol), f"/placements/{placement.pk}/publish/"
    page = Page(client.get(address))
    table = page.one("region", "Scenarios side by side")
    assert len(table.every("button", "Publish ")) == 2
    sent = {"version": placement.version, "back": "scenarios"}
    assert client_of(bob).post(post, sent).status_code == 403
    page = Page(client.post(post, sent, follow=True))
    assert page.has("paragraph", f"{placement.name} is published.")
    moved = moved_between(placement, other)
    told = counted(moved, "person moves", "people move")
    question = f"{placement.name} is published now, and would not be any more; {told}."
    assert page.one("dialog", "Publish this placement").has("paragraph", question)
    table = page.one("region", "Scenarios side by side")
    assert table.one("button", "Publish ").name == f"Publish {other.name}"
    stale = {"version": other.version - 1, "back": "scenarios"}
    client.post(f"/placements/{other.pk}/publish/", stale)
    assert [p.is_published for p in (fresh(placement), fresh(other))] == [True, False]
    answer = client.post(f"/placements/{other.pk}/publish/", {**stale, "version": other.version})
    assert answer.url == address
    assert [p.is_published for p in (fresh(placement), fresh(other))] == [False, True]
    verbs = AuditLine.objects.filter(target_id=str(other.pk)).values_list("verb", flat=True)
    assert "published" in verbs


def fresh(placement: Placement) -> Placement:
    return Placement.objects.get(pk=placement.pk)


@pytest.mark.parametrize(("leave", "words"), [("locks", "released"), ("nevers", "share a room")])
def test_locks_and_nevers_that_clash_have_a_button_each(
    bob: User, placement: Placement, client_of: ClientOf, leave: str, words: str
) -> None:
    (one, other), _ = two_rooms(placement)
    places_lock(
        user=bob, placement=placement, numbers=[one, other], locked=True, version=placement.version
    )
    students = placement.cohort.students
    never = [students.get(number=number) for number in (one, other)]
    ForbiddenPair.objects.create(cohort=placement.cohort, first=never[0], second=never[1])
    placement_compute(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.state == "failed"
    client, address = client_of(bob), f"/placements/{placement.pk}/"
    clash = Page(client.get(address)).one("region", "Rules that clash")
    assert clash.has("button", f"Release S-{one}, S-{other}", exactly=True)
    assert clash.has("button", "Let this pair share a room", exactly=True)
    page = Page(client.post(f"{address}solve/", {"clash": "0", "leave": leave}, follow=True))
    assert page.has("status", words)
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    page = Page(client.post(f"{address}solve/", {"clash": "0", "leave": leave}, follow=True))
    assert page.has("alert", "Nothing of this kind takes part any more.")


def test_too_few_beds_are_told_in_words_that_staff_know(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel, client_of: ClientOf
) -> None:
    campus.rooms.exclude(name__startswith="1").update(state="offline")
    made = placement_create(
        user=bob, name="P", cohort=first_years, buildings=campus, model=learned, rules=RULES
    )
    run_waiting()
    page = Page(client_of(bob).get(f"/placements/{made.pk}/"))
    assert page.says("rooms are designated by who may live there")
    page = Page(client_of(bob).get(f"/placements/new/?cohort={first_years.pk}"))
    assert page.says("too few, so some stay without a room")


def test_a_placement_without_a_proof_does_not_boast(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    placement.figures["relative_gap"] = 8.88
    placement.save()
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/"))
    assert page.says("Too early to tell how near the best")
    page = Page(client_of(bob).get(f"/cohorts/{placement.cohort_id}/scenarios/"))
    assert page.has("cell", "too early to tell")
