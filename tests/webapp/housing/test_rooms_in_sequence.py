"""A room of eight beds with eleven people over the term: three beds have two people in sequence."""

from collections.abc import Callable
from datetime import date
from itertools import combinations

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.models import Placement, Room, RoommateRequest
from webapp.housing.problem import placement_problem
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.rooms import room_drawer
from webapp.housing.selectors.togetherness import asked_pairs
from webapp.housing.services.decisions import Move, places_lock, places_move
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.terms import placement_term_set, term_save
from webapp.housing.services.versions import version_use
from webapp.housing.stays import Stay, successive_groups
from webapp.reports import figures
from webapp.reports.models import PlacementCheck
from webapp.reports.selectors import hall_reports
from webapp.students.rooms import stays_of

ClientOf = Callable[[User], Client]
END_OF_FIRST, START_OF_SECOND = date(2026, 10, 31), date(2026, 11, 1)


def fresh(placement: Placement) -> Placement:
    return Placement.objects.get(pk=placement.pk)


def set_days(user: User, placement: Placement, number: int, first=None, last=None) -> None:
    now = fresh(placement)
    place_dates_set(
        user=user, placement=now, number=number, arrives_on=first, leaves_on=last,
        version=now.version,
    )  # fmt: skip


def move(user: User, placement: Placement, numbers: list[int], room: Room) -> None:
    now = fresh(placement)
    places_move(
        user=user, placement=now, moves=[Move(n, room.pk) for n in numbers], version=now.version,
        sentence="Moved.",
    )  # fmt: skip


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.housing.jobs.PLACE_SECONDS", 1.0)
    monkeypatch.setattr("webapp.housing.jobs.CHANGE_SECONDS", 1.0)


@pytest.fixture
def large(placement: Placement) -> Room:
    return Room.objects.create(
        buildings=placement.buildings, hall="Elm", name="E8", capacity=8, position=50
    )


@pytest.fixture
def followers(bob: User, placement: Placement, large: Room) -> tuple[list[int], list[int]]:
    """Eight women live in one room. Three leave in October; three others arrive in November."""
    RoommateRequest.objects.all().delete()
    term = term_save(
        user=bob, term=None, name="Autumn", code="", starts_on=date(2026, 8, 20),
        ends_on=date(2026, 12, 18),
    )  # fmt: skip
    placement_term_set(user=bob, placement=fresh(placement), term=term)
    women = list(
        placement.cohort.students.filter(attributes__Gender="F").values_list("number", flat=True)
    )
    first, second = women[:8], women[8:11]
    for number in first[:3]:
        set_days(bob, placement, number, last=END_OF_FIRST)
    for number in second:
        set_days(bob, placement, number, first=START_OF_SECOND)
    move(bob, placement, first, large)
    move(bob, placement, second, large)
    return first, second


def scores_in(placement: Placement, room: Room) -> dict[int, float | None]:
    return dict(placement.places.filter(room=room).values_list("number", "score"))


def expected_scores(placement: Placement, first: list[int], second: list[int]) -> dict[int, float]:
    """The mean of each student's pairs with the people who are there on a day of theirs."""
    scores = Scores(fresh(placement))
    everybody = [*first, *second]
    table = scores.between(everybody, everybody)
    mates = {n: {*first, *second} - {n} for n in everybody}
    for one in first[:3]:
        mates[one] -= set(second)
    for one in second:
        mates[one] -= set(first[:3])
    at = {number: k for k, number in enumerate(everybody)}
    return {n: float(np.mean([table[at[n], at[m]] for m in mates[n]])) for n in everybody}


def test_groups_of_people_who_follow_each_other() -> None:
    until, since = Stay(last=END_OF_FIRST), Stay(first=START_OF_SECOND)
    assert successive_groups({1: (1, Stay()), 2: (2, Stay())}) == [[1, 2]]
    assert successive_groups({1: (1, until), 2: (1, since), 3: (2, Stay())}) == [[1, 3], [2]]
    assert successive_groups({1: (1, until), 2: (1, since), 3: (2, since)}) == [[2, 3], [1]]
    assert successive_groups({}) == []


def test_scores_count_people_who_are_there_on_the_same_days(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]]
) -> None:
    expected = expected_scores(placement, *followers)
    assert scores_in(placement, large) == pytest.approx(expected)
    # Without dates again, two who were apart share the room: other scores.
    late = followers[1][0]
    now = fresh(placement)
    places_move(
        user=bob, placement=now, moves=[Move(late, None)], version=now.version, sentence="Out."
    )
    before = scores_in(placement, large)
    set_days(bob, placement, followers[0][0], last=date(2026, 12, 1))
    after = scores_in(placement, large)
    assert before != after
    assert after == pytest.approx(Scores(fresh(placement)).of_members(list(after)))


def test_another_computation_keeps_everybody_and_scores_those_who_share(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf,
) -> None:  # fmt: skip
    client = client_of(bob)
    assert client.get(reverse("housing:placement", args=[placement.pk])).status_code == 200
    client.post(reverse("housing:placement-compute", args=[placement.pk]))
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    n_students = placement.cohort.students.count()
    now = fresh(placement)
    version = now.versions.order_by("-number").first()
    inside = {row[0] for row in version.rows if row[1] == large.pk}
    keys = dict(now.cohort.students.values_list("number", "pk"))
    assert inside >= {keys[n] for n in [*followers[0], *followers[1]]}
    assert len(version.rows) == n_students
    assert version.outcome["placed"] == now.places.with_bed().count()
    page = client.get(reverse("housing:version", args=[placement.pk, version.number]))
    assert page.status_code == 200
    version_use(
        user=bob, placement=now, number=version.number, digest=fit_version(now, version).digest
    )
    held = scores_in(placement, large)
    assert held == pytest.approx(expected_scores(placement, *followers))


def test_the_outcome_of_a_version_is_that_of_the_rooms_once_in_force(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf,
) -> None:  # fmt: skip
    client_of(bob).post(reverse("housing:placement-compute", args=[placement.pk]))
    run_waiting()
    now = fresh(placement)
    version = now.versions.order_by("-number").first()
    version_use(
        user=bob, placement=now, number=version.number, digest=fit_version(now, version).digest
    )
    scores = [s for s in now.places.values_list("score", flat=True) if s is not None]
    assert version.outcome["mean"] == pytest.approx(float(np.mean(scores)))


def test_late_changes_are_computed_with_people_in_sequence(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf,
) -> None:  # fmt: skip
    client = client_of(bob)
    gone = placement.places.with_bed().exclude(room=large).first()
    client.post(
        reverse("housing:changes-withdraw", args=[placement.pk]),
        {"students": gone.label, "version": fresh(placement).version},
    )
    sent = client.post(reverse("housing:changes-propose", args=[placement.pk]), {"price": "0.3"})
    assert sent.status_code in (200, 302)
    jobs = run_waiting()
    assert [job.state for job in jobs] == ["succeeded"] * len(jobs)
    assert jobs
    assert client.get(reverse("housing:changes", args=[placement.pk])).status_code == 200
    assert set(scores_in(placement, large)) == {*followers[0], *followers[1]}


def test_checks_name_roommates_of_the_same_days_alone(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(figures, "DOUBT_SECONDS", 3.0)
    client = client_of(bob)
    client.post(reverse("reports:check-start", args=[placement.pk]))
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    found = PlacementCheck.objects.get().figures
    first, second = followers
    roommates = {frozenset(p) for p in combinations([*first, *second], 2)}
    roommates -= {frozenset((a, b)) for a in first[:3] for b in second}
    named = {frozenset(row[:2]) for row in found["pairs"] if row[2] == large.pk}
    assert named == roommates
    sure = {frozenset(row[:2]): row[3] for row in found["doubt"]["pairs"] if row[2] == large.pk}
    assert sure == dict.fromkeys(roommates, 1.0)  # they keep the room, whatever is drawn
    for tab in ("doubt", "veto", "parity", "drift"):
        page = client.get(reverse("reports:checks", args=[placement.pk]), {"tab": tab})
        assert page.status_code == 200


def test_the_report_counts_beds_and_not_people(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf,
) -> None:  # fmt: skip
    rooms = PlacementRooms(fresh(placement))
    hall = next(one for one in hall_reports(rooms) if one.name == "Elm")
    others = placement.places.filter(room__hall="Elm").exclude(room=large).count()
    assert hall.n_taken == 8 + others
    page = Page(client_of(bob).get(reverse("reports:report", args=[placement.pk])))
    taken = page.one("table", "All halls").one("row", "Elm").every("cell")[3]
    assert taken.text == f"{8 + others}"


def test_who_may_enter_leave_and_meet_by_the_days(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]],
    client_of: ClientOf,
) -> None:  # fmt: skip
    first, second = followers
    RoommateRequest.objects.create(
        cohort=placement.cohort, student=placement.cohort.students.get(number=first[0]),
        target=placement.cohort.students.get(number=second[0]),
    )  # fmt: skip
    rooms = PlacementRooms(fresh(placement))
    card = next(card for card in rooms.cards() if card.room == large)
    assert (card.n_at_once, card.free, card.n_honoured) == (8, 0, 0)
    assert not rooms.is_together(first[0], second[0])
    (asked,) = asked_pairs(rooms, [(first[0], second[0])])
    assert (asked.shared, asked.way) == (None, None)
    drawer = room_drawer(rooms, card, None)
    assert (first[0], second[0]) not in drawer["cells"]
    assert (first[0], first[1]) in drawer["cells"]
    assert drawer["total"] == pytest.approx(sum(scores_in(placement, large).values()) / 2)
    page = client_of(bob).get(reverse("housing:placement", args=[placement.pk]), {"room": large.pk})
    assert page.status_code == 200
    scenarios = client_of(bob).get(reverse("housing:scenarios", args=[placement.cohort_id]))
    assert scenarios.status_code == 200
    now = next(s for s in stays_of(placement.cohort.students.get(number=first[0])) if s.placement)
    assert set(now.roommates) == set(first[1:])
    # Every room that is offered, and what it changes, is what a move there makes of it.
    choices = choices_of(rooms, first[0])
    before = sum(s or 0.0 for s in placement.places.values_list("score", flat=True)) / 2
    assert choices.rooms
    move(bob, placement, [first[0]], choices.rooms[0].card.room)
    after = sum(s or 0.0 for s in placement.places.values_list("score", flat=True)) / 2
    assert after - before == pytest.approx(choices.rooms[0].total)


def test_a_locked_student_who_follows_somebody_is_no_contradiction(
    bob: User, placement: Placement, large: Room, followers: tuple[list[int], list[int]]
) -> None:
    now = fresh(placement)
    everybody = [*followers[0], *followers[1]]
    places_lock(user=bob, placement=now, numbers=everybody, locked=True, version=now.version)
    problem = placement_problem(fresh(placement))
    assert int(problem.rooms.max_capacities.max()) <= 8
    where = {problem.students[k].number: problem.room_keys[room] for k, room in
             problem.rules.assigned}  # fmt: skip
    assert where == dict.fromkeys(everybody, large.pk)
